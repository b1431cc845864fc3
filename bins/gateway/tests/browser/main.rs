//! The pages in real Chromium, against the real binary: what a visitor and two agents see and do, each
//! in a browser of their own. Nothing waits for time; everything waits for what a page shows.

#[path = "../support/mod.rs"]
mod support;

mod axe;
mod crash;
mod driver;
mod embed;
mod example;
mod line;
mod network;
mod page;
mod people;
mod pictures;
mod site;
mod talk;
mod widget;
mod wire;
