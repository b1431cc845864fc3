//! The pages in real Chromium, against the real binary: what a visitor and two agents see and do, each
//! in a browser of their own. Nothing waits for time; everything waits for what a page shows.

#[path = "../support/mod.rs"]
mod support;

mod attention;
mod avatar;
mod axe;
mod board;
mod console;
mod crash;
mod driver;
mod embed;
mod example;
mod keyboard;
mod line;
mod looks;
mod network;
mod page;
mod people;
mod pictures;
mod pictures_console;
mod real;
mod site;
mod smooth;
mod states;
mod talk;
mod unseen;
mod visitor_facts;
mod widget;
mod wire;
