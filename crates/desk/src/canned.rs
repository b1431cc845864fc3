//! Canned replies: the menu, and changing one's shelf.

use kefu_console::{
    CannedDecision, CannedReply, CannedRequest, CannedVerdict, Shelf, check_shortcut,
    decide_delete, decide_put, find_replies, own_shelf,
};
use kefu_core::text::{check_message_text, check_short_text};
use kefu_core::{Caller, CannedId, Page, PageLimit, limit};
use kefu_session::Refusal;

use crate::{Desk, DeskError};

impl Desk {
    /// The replies that fit `query`, best first, from the `offset`-th on: an agent's own and the team's, a
    /// supervisor's the team's.
    ///
    /// # Errors
    /// `forbidden` for users.
    pub async fn list_canned(
        &self,
        caller: &Caller,
        query: &str,
        offset: usize,
        limit: PageLimit,
    ) -> Result<Page<CannedReply>, DeskError> {
        let shelves = match own_shelf(caller)? {
            Shelf::Team => vec![Shelf::Team],
            own @ Shelf::Own(_) => vec![own, Shelf::Team],
        };
        let found = find_replies(self.stores.canned.list(&shelves).await?, query);
        let page = found.into_iter().skip(offset).take(limit.get() as usize + 1).collect();
        Ok(Page::from_overfetched(page, limit))
    }

    /// Writes a reply on `shelf`, which must be the caller's to write.
    ///
    /// # Errors
    /// `forbidden` for another's shelf, `not_found` for an id that is not on it, `conflict` for a shortcut that is
    /// taken, `bad_request` when there are 100 already, and what the texts break.
    pub async fn put_canned(
        &self,
        caller: &Caller,
        shelf: Option<&Shelf>,
        request: &CannedRequest,
    ) -> Result<CannedReply, DeskError> {
        let own = own_shelf(caller)?;
        let shelf = shelf.filter(|shelf| **shelf == own).ok_or(Refusal::Forbidden)?;
        if !check_shortcut(&request.shortcut) {
            return Err(Refusal::BadRequest("this cannot be a shortcut").into());
        }
        check_message_text(&request.content, limit::MAX_CANNED_CHARS)?;
        check_short_text(&request.title)
            .map_err(|_| Refusal::BadRequest("the title is too long"))?;
        let now = self.clock().now();
        let changed = self
            .change_canned(shelf, &|present, ids| decide_put(present, shelf, request, now, ids))
            .await?;
        match changed {
            CannedVerdict::Write(reply) | CannedVerdict::Keep(reply) => Ok(reply),
            CannedVerdict::Remove(_) => Err(Refusal::Conflict.into()),
            CannedVerdict::Refuse(refusal) => Err(refusal.into()),
        }
    }

    /// Deletes a reply of the shelf that the caller writes.
    ///
    /// # Errors
    /// `forbidden` for users, `not_found` for what is not on that shelf.
    pub async fn delete_canned(&self, caller: &Caller, id: CannedId) -> Result<(), DeskError> {
        let shelf = own_shelf(caller)?;
        match self.change_canned(&shelf, &|present, _| decide_delete(present, id)).await? {
            CannedVerdict::Refuse(refusal) => Err(refusal.into()),
            CannedVerdict::Write(_) | CannedVerdict::Keep(_) | CannedVerdict::Remove(_) => Ok(()),
        }
    }

    async fn change_canned(
        &self,
        shelf: &Shelf,
        decide: CannedDecision<'_>,
    ) -> Result<CannedVerdict, DeskError> {
        Ok(self.stores.canned.change(shelf, decide, self.source.ids()).await?)
    }
}
