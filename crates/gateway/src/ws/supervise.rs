//! Frames of supervisors, and the page of a visitor.

use kefu_core::SessionId;
use kefu_protocol::{
    BoardFrame, BoardRequest, Explanation, PageReport, ServerFrame, SessionRef, SessionWatch,
    session_object,
};

use super::answer::Answer;
use super::frames::Case;
use crate::registry::Note;

impl Case {
    pub(super) async fn watch(self, watch: SessionRef) -> Answer {
        match self.desk.watch_session(&self.caller, self.conn, watch.session_id).await {
            Ok((view, unread)) => {
                let session = &view.session;
                let object =
                    session_object(session, view.agent.as_ref(), view.place, view.agents_online);
                let frame = SessionWatch { session: object.for_agent(session, unread, None) };
                // From here on what stays behind is healed, as for those who take part (M5).
                let note = match session.is_open() {
                    true => Note::Given(session.id, session.last_seq),
                    false => Note::None,
                };
                Answer::Frame(self.call.encode(&ServerFrame::SessionWatch(frame)), note)
            }
            Err(error) => self.call.refuse(&error),
        }
    }

    pub(super) async fn unwatch(self, watch: SessionRef) -> Answer {
        match self.desk.unwatch_session(&self.caller, self.conn, watch.session_id).await {
            Ok(()) => {
                let note = Note::Over(watch.session_id);
                Answer::Frame(self.call.encode(&ServerFrame::SessionUnwatch(watch)), note)
            }
            Err(error) => self.call.refuse(&error),
        }
    }

    pub(super) async fn board(self, request: BoardRequest) -> Answer {
        let figures = self.desk.board(&self.caller, self.conn, request.subscribe).await;
        self.answer(figures.map(|figures| ServerFrame::Board(BoardFrame::from(&figures))))
    }

    pub(super) async fn explain(self, session: SessionId) -> Answer {
        let records = self.desk.explain(&self.caller, session).await;
        self.answer(
            records.map(|records| ServerFrame::Explanation(Explanation::new(session, &records))),
        )
    }

    pub(super) async fn page(self, page: PageReport) -> Answer {
        match self.desk.page(&self.caller, page.view(), &self.call.trace).await {
            Ok(()) => Answer::Silent,
            Err(error) => self.call.refuse(&error),
        }
    }
}
