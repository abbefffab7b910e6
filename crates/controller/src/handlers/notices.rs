//! Members' own notices: listed, and marked as read.

use corpus_api::notices::{ListNotices, MarkNoticesRead, NoticePage, NoticeRead, NoticesRead, ReadNotice};
use corpus_api::{Cursor, Denied};
use corpus_gate::{Change, Committed, Handle, Permit, Result};

use super::{after, lines, page};
use crate::Controller;
use crate::store::notices;

/// The list, for its cursors.
const LIST: &str = "own notices, the newest first";

impl Handle<ListNotices> for Controller {
    async fn handle(&self, permit: Permit<ListNotices>) -> Result<NoticePage> {
        let (limit, rows) = lines(permit.limit);
        let before = after(permit.cursor.as_ref(), LIST)?;
        let (who, visible, unread) = (permit.who().id, permit.visible(), permit.unread == Some(true));
        let mut conn = permit.connection().await?;
        let found = notices::of_user(&mut conn, who, visible.as_deref(), unread, before, rows).await?;
        let (items, next) = page(found, limit, |notice| Cursor::after(LIST, &notice.id));
        Ok(NoticePage { items, next })
    }
}

impl Handle<ReadNotice> for Controller {
    async fn handle(&self, mut change: Change<ReadNotice>) -> Result<Committed<ReadNotice>> {
        let (notice, who) = (change.notice, change.who());
        let visible = who.visible_projects();
        let tx = change.transaction().await?;
        let news = notices::mark(tx, who.id, visible.as_deref(), notice).await?.ok_or(Denied::NotFound)?;
        change.commit_unaudited(NoticeRead { notice, path: news.path() }).await
    }
}

impl Handle<MarkNoticesRead> for Controller {
    async fn handle(&self, mut change: Change<MarkNoticesRead>) -> Result<Committed<MarkNoticesRead>> {
        let (upto, who) = (change.upto, change.who());
        let marked = notices::mark_all(change.transaction().await?, who.id, upto).await?;
        if marked == 0 {
            return change.unchanged(NoticesRead { marked }).await;
        }
        change.commit_unaudited(NoticesRead { marked }).await
    }
}
