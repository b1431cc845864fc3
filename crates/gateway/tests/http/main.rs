//! The HTTP API over a world in memory, without a listener.

mod admission;
mod demo;
mod history;
mod image;
mod site;
mod support;
mod upload;
