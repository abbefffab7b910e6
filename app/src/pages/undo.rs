//! What one has just taken away or changed, and can still undo: at the top of the page where it was.

use corpus_api::undoes::{ListUndoes, Undo, UndoLine};
use corpus_api::words::Limit;
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{Tone, age, notice, stays_at};
use crate::form::Result;
use crate::to::to;

/// As many are offered at once.
const FEW: u64 = 3;

/// Those of one's own changes that a page offers to undo.
pub async fn few(caller: &Caller, asked: ListUndoes) -> Result<Vec<UndoLine>> {
    Ok(caller.ask(ListUndoes { limit: Limit::try_from(FEW).ok(), ..asked }).await?.items)
}

/// The notices at the top of the page at `page`. They stand there empty too, since a page is kept fresh.
pub fn offered(undoes: &[UndoLine], page: &str) -> AnyView {
    let waits = undoes.iter().any(|one| !one.ready).then_some("");
    let notices = undoes.iter().map(|one| one_notice(one, page)).collect_view();
    view! { <div class="stack" id="live-undoes" data-live="" data-busy=waits>{notices}</div> }.into_any()
}

fn one_notice(one: &UndoLine, page: &str) -> AnyView {
    let button = if one.ready {
        view! {
            <form method="post" action={to::<Undo>(&[&one.id])} class="inline">
                {stays_at(page, "undo")}
                <input type="hidden" name="_id" value=one.id.to_string()/>
                <button class="btn small" aria-label=format!("Undo: {}", one.said)>"Undo"</button>
            </form>
        }
        .into_any()
    } else {
        view! { <span class="quiet">"It can be undone as soon as that is over."</span> }.into_any()
    };
    let more = view! { <span class="quiet">{age(one.created_at)}</span>{button} };
    notice(Tone::Off, one.said.clone(), more.into_any())
}

#[cfg(test)]
mod tests {
    use corpus_api::undoes::Undoable;
    use corpus_domain::UndoId;

    use super::*;

    #[test]
    fn what_is_still_on_its_way_is_not_offered_yet() {
        let now = chrono::Utc::now();
        let one = |ready| UndoLine {
            id: UndoId(uuid::Uuid::nil()),
            of: Undoable::Name,
            said: "<b>www</b> was detached.".into(),
            ready,
            created_at: now,
            expires_at: now,
        };
        let html = |undoes: &[UndoLine]| Owner::new().with(|| offered(undoes, "/dns").to_html());
        let ready = html(&[one(true)]);
        assert!(ready.contains("action=\"/undoes/00000000-0000-0000-0000-000000000000\""), "{ready}");
        assert!(ready.contains("name=\"_next\" value=\"/dns\"") && !ready.contains("<b>www"), "{ready}");
        let waits = html(&[one(false)]);
        assert!(!waits.contains("<form") && waits.contains("data-busy"), "{waits}");
        assert!(html(&[]).contains("id=\"live-undoes\""));
    }
}
