#![doc = include_str!("../README.md")]

mod canned;
mod client;
mod close;
mod envelope;
mod fields;
mod frames;
mod history;
pub mod http;
mod locale;
mod note;
mod page;
mod push;
mod schema;
mod send;
mod server;
mod sessions;
mod supervisor;
mod text;
mod vocabulary;

pub use canned::{
    CannedCursor, CannedItem, CannedList, CannedListRequest, CannedPut, CannedRef, CannedScope,
    CannedStored,
};
pub use client::{
    Ack, AgentOffline, AgentOnline, ClientFrame, Connect, Empty, Rate, SessionRef, Token, Transfer,
};
pub use close::CloseCode;
pub use envelope::{FrameError, Inbound, Outbound, Ref};
pub use history::{HistoryRequest, InvalidWindow};
pub use locale::Locale;
pub use note::{NoteAdd, NoteList, NoteListRequest, NoteObject};
pub use page::{PageReport, PageShown};
pub use push::frame_of_push;
pub use schema::document as schema_document;
pub use send::SendMessage;
pub use server::ServerFrame;
pub use server::agent::{
    AgentEntry, AgentList, AgentStatus, QueueList, QueuedSession, RemovalReason, SessionNew,
    SessionRemoved,
};
pub use server::connected::{Connected, ConnectedParts, Limits, Standing};
pub use server::error::ErrorFrame;
pub use server::message::{History, MessageObject, PeerAck, ServerAck, SignLinks};
pub use server::session::{
    OfflineNotice, Pong, QueuePosition, SessionAssigned, SessionEnded, SessionObject, SessionRated,
    SessionRead, SessionRequeued, SessionTransferred, session_object,
};
pub use sessions::{LastMessage, SessionEntry, SessionListRequest, SessionScope, SessionsList};
pub use supervisor::{
    ActorObject, BoardFrame, BoardRequest, CandidateObject, Explanation, RecordObject,
    ResponseTimes, SessionWatch,
};
pub use vocabulary::{
    AckStatus, AgentInfo, Availability, EndedBy, Intent, MessageStatus, MessageType, SenderType,
    SessionStatus, Typing, UserInfo,
};
