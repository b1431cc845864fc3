# Short names for the commands of this repository; `cargo xtask` knows how things are run.

# List the recipes.
default:
    @just --list

# Run the gateway (embedded profile) on 127.0.0.1:8080.
run *args:
    cargo run --release --bin gateway -- {{ args }}

# Install what is missing, then run every test.
test *args:
    cargo xtask test {{ args }}

# Run a long demonstration: `kill` or `idle`.
show name *args:
    cargo xtask show {{ name }} {{ args }}

# Everything that a change must pass, from a clean clone of HEAD.
ci:
    bash .ci/run

# Format the sources.
fmt:
    cargo fmt --all

# What the compiler's and clippy's lints say; warnings are errors.
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Check the repository rules.
tidy:
    cargo xtask tidy

# Regenerate docs/protocol.schema.json.
schema:
    cargo xtask schema
