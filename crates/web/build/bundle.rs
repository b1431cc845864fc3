//! A page's modules as one: imported ones first, each once, their names side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::token::{Kind, Token, tokens};

/// One module after another, without `import`, and with no `export` but the entry's.
pub(crate) struct Bundle {
    /// All tokens.
    pub(crate) tokens: Vec<Token>,
    /// What the entry exports.
    pub(crate) exported: BTreeSet<String>,
    /// The files it was made of.
    pub(crate) files: BTreeSet<PathBuf>,
}

/// Reads an entry and all that it imports.
pub(crate) fn bundle(folder: &Path, entry: &str) -> Result<Bundle, String> {
    let empty = Bundle { tokens: Vec::new(), exported: BTreeSet::new(), files: BTreeSet::new() };
    let mut bundler = Bundler { bundle: empty, owners: BTreeMap::new() };
    bundler.add(&folder.join(entry), true)?;
    Ok(bundler.bundle)
}

struct Bundler {
    bundle: Bundle,
    /// The module of each top-level name.
    owners: BTreeMap<String, PathBuf>,
}

impl Bundler {
    fn add(&mut self, file: &Path, is_entry: bool) -> Result<(), String> {
        if !self.bundle.files.insert(file.to_owned()) {
            return Ok(());
        }
        let told = |error: String| format!("{}: {error}", file.display());
        let source = fs::read_to_string(file).map_err(|error| told(error.to_string()))?;
        let module = tokens(&source).map_err(told)?;
        let mut own = Vec::new();
        let mut at = 0;
        while at < module.len() {
            let token = &module[at];
            if token.is("import") && module.get(at + 1).is_some_and(|next| !next.is(".")) {
                let end = statement_end(&module, at).map_err(told)?;
                self.add(&imported(file, &module[at..end]).map_err(told)?, false)?;
                at = end + 1;
            } else if token.is("export") {
                at = self.export(&module, at, is_entry, &mut own).map_err(told)?;
            } else {
                own.push(token.clone());
                at += 1;
            }
        }
        self.claim(&own, file)?;
        self.bundle.tokens.extend(own);
        Ok(())
    }

    /// Takes an `export`; gives where to go on.
    fn export(
        &mut self,
        module: &[Token],
        at: usize,
        is_entry: bool,
        own: &mut Vec<Token>,
    ) -> Result<usize, String> {
        let list = module.get(at + 1).is_some_and(|next| next.is("{"));
        if !list {
            let name = module[at + 1..].iter().find(|token| {
                token.kind == Kind::Word
                    && !matches!(
                        token.text.as_str(),
                        "async" | "const" | "let" | "class" | "function"
                    )
            });
            if is_entry {
                self.bundle.exported.extend(name.map(|name| name.text.clone()));
                own.push(module[at].clone());
            }
            return Ok(at + 1);
        }
        let end = statement_end(module, at)?;
        if is_entry {
            let names = module[at + 1..end].iter().filter(|token| token.kind == Kind::Word);
            self.bundle.exported.extend(names.map(|token| token.text.clone()));
            own.extend_from_slice(&module[at..=end]);
        }
        Ok(end + 1)
    }

    /// Top-level names of different modules must differ, since they now stand side by side.
    fn claim(&mut self, own: &[Token], file: &Path) -> Result<(), String> {
        let mut depth = 0_usize;
        for (at, token) in own.iter().enumerate() {
            match (token.kind, token.text.as_str()) {
                (Kind::Sign, "{" | "(" | "[") => depth += 1,
                (Kind::Sign, "}" | ")" | "]") => depth = depth.saturating_sub(1),
                (Kind::Template, text) => {
                    depth = (depth + usize::from(text.ends_with("${")))
                        .saturating_sub(usize::from(text.starts_with('}')));
                }
                (Kind::Word, "const" | "let" | "class" | "function") if depth == 0 => {
                    let Some(name) = own.get(at + 1) else { continue };
                    if let Some(other) = self.owners.insert(name.text.clone(), file.to_owned()) {
                        return Err(format!(
                            "{} and {} both declare {}",
                            other.display(),
                            file.display(),
                            name.text
                        ));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn statement_end(module: &[Token], at: usize) -> Result<usize, String> {
    let length = module[at..].iter().position(|token| token.is(";"));
    length.map(|length| at + length).ok_or_else(|| "an import or export without `;`".to_owned())
}

/// The file that an import statement names; names are imported under their own name, or none at all.
fn imported(importer: &Path, statement: &[Token]) -> Result<PathBuf, String> {
    if statement.iter().any(|token| token.is("as") || token.is("*")) {
        return Err("an import must not rename".to_owned());
    }
    let named = statement.last().filter(|token| token.kind == Kind::Literal);
    let relative =
        named.map(|token| token.text.trim_matches('"')).filter(|path| path.starts_with('.'));
    let relative = relative.ok_or("an import must name a file by its relative path")?;
    let mut path = importer.parent().map(Path::to_owned).unwrap_or_default();
    for part in Path::new(relative).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(path)
}
