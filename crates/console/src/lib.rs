#![doc = include_str!("../README.md")]

mod canned;
mod note;
mod reply_menu;

pub use canned::{
    CannedDecision, CannedReply, CannedRequest, CannedStore, CannedVerdict, Shelf, check_shortcut,
    decide_delete, decide_put, own_shelf,
};
pub use note::{
    FreshNote, Note, NoteDecision, NoteRequest, NoteSnapshot, NoteStore, NoteVerdict, decide_note,
};
pub use reply_menu::find_replies;
