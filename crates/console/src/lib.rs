#![doc = include_str!("../README.md")]

mod canned;
mod figures;
mod note;
mod page;
mod reply_menu;

pub use canned::{
    CannedDecision, CannedReply, CannedRequest, CannedStore, CannedVerdict, Shelf, check_shortcut,
    decide_delete, decide_put, own_shelf,
};
pub use figures::{BOARD_MINUTES, BoardAgent, BoardFigures, Percentiles};
pub use note::{
    FreshNote, Note, NoteDecision, NoteRequest, NoteSnapshot, NoteStore, NoteVerdict, decide_note,
};
pub use page::{InvalidPage, PageView};
pub use reply_menu::find_replies;
