//! Makes of the modules in `static` what is served: each page's modules as one, short, compressed.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zopfli::Format;

#[path = "build/bundle.rs"]
mod bundle;
#[path = "build/minify.rs"]
mod minify;
#[path = "build/scope.rs"]
mod scope;
#[path = "build/simplify.rs"]
mod simplify;
#[path = "build/token.rs"]
mod token;

/// The modules that pages name.
const ENTRIES: [&str; 4] = ["client.js", "widget.js", "index.js", "console.js"];
/// Files that are served beside them.
const SERVED_AS_THEY_ARE: [&str; 3] = ["html", "svg", "ts"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=static");
    println!("cargo::rerun-if-changed=build");
    let folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("static");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut table = String::from("[\n");
    for entry in ENTRIES {
        let bundle = bundle::bundle(&folder, entry)?;
        let kept = &bundle.exported;
        let short = minify::shorten(&simplify::simplify(&bundle.tokens, kept), kept);
        add(&mut table, &out, entry, minify::print(&short).as_bytes())?;
    }
    let mut names: Vec<_> = fs::read_dir(&folder)?
        .map(|file| file.map(|file| file.path()))
        .collect::<Result<_, _>>()?;
    names.sort();
    for path in names {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let extension =
            path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if SERVED_AS_THEY_ARE.contains(&extension) {
            add(&mut table, &out, name, &fs::read(&path)?)?;
        } else if extension == "css" {
            add(
                &mut table,
                &out,
                name,
                minify::style_sheet(&fs::read_to_string(&path)?).as_bytes(),
            )?;
        }
    }
    table.push(']');
    fs::write(out.join("files.rs"), table)?;
    Ok(())
}

/// Writes a file as it is served, plain and compressed, and its row.
fn add(table: &mut String, out: &Path, name: &str, body: &[u8]) -> Result<(), Box<dyn Error>> {
    let plain = out.join(name);
    let packed = out.join(format!("{name}.gz"));
    fs::write(&plain, body)?;
    let mut gzip = Vec::new();
    zopfli::compress(zopfli::Options::default(), Format::Gzip, body, &mut gzip)?;
    fs::write(&packed, gzip)?;
    let digest: String = Sha256::digest(body).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    writeln!(
        table,
        "    File {{ name: {name:?}, body: include_bytes!({plain:?}), gzip: include_bytes!({packed:?}), digest: {digest:?} }},"
    )?;
    Ok(())
}
