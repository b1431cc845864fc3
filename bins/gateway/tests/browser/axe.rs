//! axe-core, the accessibility checker: fetched by npm into the build folder, never part of the product.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::page::Page;

const PACKAGE: &str = "axe-core@4.14.1";

/// Finds nothing serious on the page, its shadow trees included; and would find something.
pub(crate) async fn is_accessible(page: &Page) -> Result<()> {
    page.run(&script()?).await?;
    let found = serious(page).await?;
    ensure!(found.is_empty(), "axe-core: {found:#?}");
    page.run("(document.querySelector('dialog[open]') ?? document.body).append(Object.assign(document.createElement('img'), {src: '/favicon.svg', id: 'bad'}))")
        .await?;
    let found = serious(page).await?;
    ensure!(found.iter().any(|violation| violation.contains("image-alt")), "{found:?}");
    page.run("document.getElementById('bad').remove()").await
}

/// Serious and critical violations, each with where it is.
async fn serious(page: &Page) -> Result<Vec<String>> {
    let run = r#"axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => done(
        violations.filter(({ impact }) => impact === "serious" || impact === "critical").flatMap(({ id, nodes }) =>
            nodes.map(({ target, failureSummary }) => `${id} at ${JSON.stringify(target)}: ${failureSummary}`))),
        (error) => done([String(error)]))"#;
    let found = page.run_async(run).await?;
    let texts = found.as_array().context("a list of violations")?.iter().filter_map(Value::as_str);
    Ok(texts.map(str::to_owned).collect())
}

fn script() -> Result<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe");
    let file: PathBuf = folder.join("node_modules/axe-core/axe.min.js");
    if !file.exists() {
        let fetched = Command::new("npm")
            .args([
                "install",
                "--no-save",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--prefix",
            ])
            .arg(&folder)
            .arg(PACKAGE)
            .output()
            .context(
                "npm is missing: install the Debian package `npm` (`cargo xtask test` does)",
            )?;
        let said = String::from_utf8_lossy(&fetched.stderr);
        ensure!(fetched.status.success(), "npm cannot fetch {PACKAGE}: {said}");
    }
    Ok(std::fs::read_to_string(file)?)
}
