//! What concerns the member and happened while they did not look.
//!
//! A notice is read by opening what it is about: a form, since to look at a page changes nothing.

use corpus_api::notices::{ListNotices, MarkNoticesRead, News, Notice, NoticePage, ReadNotice};
use corpus_domain::{JobKind, JobState};
use leptos::prelude::*;

use super::Asked;
use crate::caller::Caller;
use crate::components::{Tone, age, empty, head, next_page, shown_at, status, stays_at, triggered_look};
use crate::form::Result;
use crate::layout::Page;
use crate::looks::look;
use crate::to::to;

/// Reads and shows them.
pub async fn load(caller: &Caller, asked: &Asked) -> Result<Page> {
    let cursor = asked.cursor();
    let is_first = cursor.is_none();
    let page = caller.ask(ListNotices { cursor, ..ListNotices::default() }).await?;
    Ok(Page::new("notices", "Notices", notices_view(&page, is_first)))
}

/// The view of plain values; the first page has the way to mark all.
pub fn notices_view(page: &NoticePage, is_first: bool) -> AnyView {
    let below = view! { <span class="quiet">"Your jobs that ended, what failed in your projects, and what waits for you; kept for 30 days"</span> };
    let newest = page.items.first().filter(|_| is_first && page.items.iter().any(|one| one.unread));
    let mark_all = newest.map(|newest| {
        view! {
            <form method="post" action={to::<MarkNoticesRead>(&[])} class="inline">
                {stays_at("/notices", "all")}
                <input type="hidden" name="upto" value=newest.id.to_string()/>
                <button class="btn">"Mark all as read"</button>
            </form>
        }
    });
    let actions = view! {
        <span class="actions" id="live-actions" data-live="">{mark_all}</span>
        <button type="button" class="btn" data-notify="" hidden>"Notify me in this browser"</button>
    };
    view! {
        {head("Notices".into_any(), below.into_any(), actions.into_any())}
        <section class="card" id="live-notices" data-live="">{table(&page.items)}</section>
        {next_page("/notices", page.next.as_ref())}
    }
    .into_any()
}

fn table(notices: &[Notice]) -> AnyView {
    if notices.is_empty() {
        return empty(
            "Nothing happened yet that concerns you",
            "When a job of yours ends, or something fails in a project of yours, it says so here and at the bell."
                .into_any(),
        );
    }
    let rows = notices.iter().map(row).collect_view();
    view! {
        <table class="rows" aria-label="Notices">
            <thead><tr><th>"What"</th><th>"State"</th><th>"When"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(notice: &Notice) -> AnyView {
    let detail = notice.detail.clone().map(|text| view! { <div class="quiet small">{text}</div> });
    view! {
        <tr data-unread=notice.unread.then_some("")>
            <td data-label="What" class="wrap">{way(notice)}{detail}</td>
            <td data-label="State">{state(&notice.news)}</td>
            <td data-label="When" class="quiet">{age(notice.created_at)}</td>
        </tr>
    }
    .into_any()
}

/// The way to what it is about; an unread one is read by taking it.
fn way(notice: &Notice) -> AnyView {
    if !notice.unread {
        return view! { <a href=notice.path.clone()>{notice.title.clone()}</a> }.into_any();
    }
    view! {
        <form method="post" action={to::<ReadNotice>(&[&notice.id])} class="inline">
            {shown_at("/notices", "")}
            <button class="way">{notice.title.clone()}</button>
        </form>
        " "<span class="tag">"unread"</span>
    }
    .into_any()
}

fn state(news: &News) -> AnyView {
    match news {
        News::Job { state: JobState::Undone, kind: Some(JobKind::GuestCreate), .. } => {
            status(Tone::Fail, "Not created")
        }
        News::Job { state: JobState::Undone, kind: Some(JobKind::NodeLink), .. } => status(Tone::Fail, "Not linked"),
        News::Job { state, .. } => {
            let (class, word) = look(state.as_str());
            view! { <span class=class>{word}</span> }.into_any()
        }
        News::Deployment { state, trigger, .. } => {
            let (tone, word) = triggered_look(*state, *trigger);
            status(tone, word)
        }
        News::KeyClaim { .. } => status(Tone::Wait, "Waits for you"),
        News::Request { state, .. } => super::requests::state_status(*state),
        News::KeyMoved { .. } => status(Tone::Warn, "Moved"),
        News::MailGivenUp { .. } => status(Tone::Fail, "Given up"),
        News::Intrusion { .. } => status(Tone::Warn, "Intrusion"),
        News::ControllerBackupFailed { .. } => status(Tone::Fail, "Backup"),
        News::WebhookOff { .. } => status(Tone::Warn, "Switched off"),
    }
}

#[cfg(test)]
mod tests {
    use corpus_domain::{JobId, NoticeId};

    use super::*;

    fn notice(number: u128, unread: bool) -> Notice {
        let id = uuid::Uuid::from_u128(number);
        let news = News::Job {
            job: JobId(id),
            kind: Some(JobKind::GuestCreate),
            title: "Create guest <b>www</b>".into(),
            state: JobState::Undone,
            reason: Some("the disk is <full>".into()),
        };
        let (title, detail, path) = (news.title(), news.detail(), news.path());
        Notice { id: NoticeId(id), title, detail, path, news, created_at: chrono::Utc::now(), unread }
    }

    fn html(items: Vec<Notice>, is_first: bool) -> String {
        Owner::new().with(|| notices_view(&NoticePage { items, next: None }, is_first).to_html())
    }

    #[test]
    fn to_look_marks_nothing_and_to_open_does() {
        let page = html(vec![notice(2, true), notice(1, false)], true);
        let (unread, read) = (notice(2, true).id, notice(1, false).path);
        assert!(page.contains(&format!("action=\"/notices/{unread}/read\"")), "{page}");
        assert!(page.contains(&format!("<a href=\"{read}\"")), "{page}");
        assert!(page.contains(&format!("name=\"upto\" value=\"{unread}\"")), "{page}");
        assert!(page.contains("&lt;b&gt;www&lt;/b&gt; was not created"), "{page}");
        assert_eq!(page.matches("data-unread").count(), 1, "{page}");
    }

    #[test]
    fn where_nothing_is_unread_nothing_is_marked() {
        assert!(!html(vec![notice(1, false)], true).contains("Mark all"));
        assert!(!html(vec![notice(1, true)], false).contains("Mark all"), "what is newer was not seen here");
    }
}
