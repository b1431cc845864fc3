//! Reads the workspace: its crates through `cargo metadata`, its texts from the work tree.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

/// What kind of table of a manifest names a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `[dependencies]` or `[build-dependencies]`: these are the arrows.
    Arrow,
    /// `[dev-dependencies]`.
    Development,
}

/// A direct dependency of a member.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// A crate of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Relative to the root, such as `crates/session`.
    pub(crate) folder: String,
    pub(crate) description: String,
    pub(crate) manifest: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// The crates of the workspace.
pub(crate) struct Workspace {
    pub(crate) members: Vec<Member>,
}

impl Workspace {
    pub(crate) fn read() -> Result<Self> {
        let metadata = MetadataCommand::new()
            .manifest_path(root().join("Cargo.toml"))
            .no_deps()
            .exec()
            .context("cargo metadata")?;
        let members = metadata.packages.iter().map(member).collect::<Result<_>>()?;
        Ok(Self { members })
    }
}

fn member(package: &cargo_metadata::Package) -> Result<Member> {
    let manifest_path = package.manifest_path.as_std_path();
    let folder = manifest_path.parent().context("a manifest without a folder")?;
    let dependencies = package.dependencies.iter().map(|dependency| Dependency {
        name: dependency.name.clone(),
        kind: match dependency.kind {
            DependencyKind::Development => Kind::Development,
            _ => Kind::Arrow,
        },
    });
    Ok(Member {
        name: package.name.to_string(),
        folder: relative(folder),
        description: package.description.clone().unwrap_or_default(),
        manifest: fs::read_to_string(manifest_path)?,
        dependencies: dependencies.collect(),
    })
}

/// A text file of the work tree.
#[derive(Clone, Debug)]
pub(crate) struct TextFile {
    /// Relative to the root, with `/` on every system.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_owned()
}

/// Every Rust and JavaScript file.
pub(crate) fn read_sources() -> Result<Vec<TextFile>> {
    read_texts(&["rs", "js", "mjs"])
}

/// Every Markdown file.
pub(crate) fn read_documents() -> Result<Vec<TextFile>> {
    read_texts(&["md"])
}

fn read_texts(extensions: &[&str]) -> Result<Vec<TextFile>> {
    let mut paths = Vec::new();
    collect(&root(), extensions, &mut paths)?;
    paths.sort();
    let read = |path: PathBuf| -> Result<TextFile> {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(TextFile { path: relative(&path), text })
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, extensions: &[&str], paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if !is_foreign(&path) {
                collect(&path, extensions, paths)?;
            }
        } else if path.extension().is_some_and(|e| extensions.iter().any(|x| e == *x)) {
            paths.push(path);
        }
    }
    Ok(())
}

/// Folders whose content is not ours: hidden, built, installed or a running gateway's data.
fn is_foreign(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.')
        || matches!(name.as_ref(), "target" | "node_modules" | "kefu-data")
        || folder.join("CACHEDIR.TAG").exists()
}

fn relative(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap_or(path);
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
