//! The rules of this repository as tests: the arrows between crates, manifests, sources and
//! documents. Each rule is a pure function that is also shown a bad sample, so that it can fail.

mod arrow;
mod document;
mod manifest;
mod source;
mod unused;
mod workspace;

use anyhow::Result;

use crate::workspace::{Workspace, read_documents, read_sources};

/// Fails with every complaint at once.
fn must_be_empty(rule: &str, complaints: &[String]) {
    assert!(complaints.is_empty(), "{rule}:\n  {}\n", complaints.join("\n  "));
}

#[test]
fn crates_use_only_what_their_row_allows() -> Result<()> {
    let workspace = Workspace::read()?;
    must_be_empty("arrows between crates", &arrow::forbidden_edges(&workspace.members));
    must_be_empty("rows of the arrow table", &arrow::table_errors(&workspace.members));
    Ok(())
}

#[test]
fn external_crates_stay_where_they_belong() -> Result<()> {
    let workspace = Workspace::read()?;
    must_be_empty("external crates", &arrow::forbidden_externals(&workspace.members));
    Ok(())
}

#[test]
fn manifests_follow_the_workspace() -> Result<()> {
    let workspace = Workspace::read()?;
    must_be_empty("manifests", &manifest::complaints(&workspace.members));
    Ok(())
}

#[test]
fn every_dependency_is_used() -> Result<()> {
    let workspace = Workspace::read()?;
    let texts = [read_sources()?, read_documents()?].concat();
    must_be_empty("dependencies", &unused::unnamed(&workspace.members, &texts));
    let root = std::fs::read_to_string(workspace::root().join("Cargo.toml"))?;
    must_be_empty("dependencies of the workspace", &unused::untaken(&root, &workspace.members));
    Ok(())
}

#[test]
fn sources_follow_the_rules() -> Result<()> {
    must_be_empty("sources", &source::complaints(&read_sources()?));
    Ok(())
}

#[test]
fn the_operators_document_names_every_metric() -> Result<()> {
    let unnamed = document::unnamed_metrics(&read_sources()?, &read_documents()?);
    must_be_empty("metrics", &unnamed);
    Ok(())
}

#[test]
fn the_architecture_document_names_every_crate() -> Result<()> {
    let workspace = Workspace::read()?;
    let documents = read_documents()?;
    must_be_empty(
        "docs/architecture.md",
        &document::unnamed_crates(&workspace.members, &documents),
    );
    Ok(())
}

#[test]
fn both_readmes_give_the_two_commands() -> Result<()> {
    must_be_empty("readmes", &document::missing_commands(&read_documents()?));
    Ok(())
}

#[test]
fn relative_links_resolve() -> Result<()> {
    let root = workspace::root();
    let broken = document::broken_links(&read_documents()?, &|path| root.join(path).exists());
    must_be_empty("links", &broken);
    Ok(())
}
