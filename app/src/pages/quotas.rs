//! Quotas: how much every project may take by default, and what each one has taken.

use corpus_api::Principal;
use corpus_api::backings::{Backings, ListBackings};
use corpus_api::lxc_lines::{AllowedLines, ListLxcLines};
use corpus_api::profiles::{ListProfiles, Profiles};
use corpus_api::quotas::{GetQuotaPolicy, ListQuotas, ProjectQuota, QuotaPage, QuotaPolicy, QuotaUse, SetQuotaPolicy};
use corpus_domain::{CpuQuota, MemoryQuota, QuotaOf, StorageQuota};
use leptos::prelude::*;

use super::Asked;
use super::backings::backings_card;
use super::lxc_lines::lines_card;
use super::profiles::profiles_card;
use super::projects::project_path;
use crate::asked::{Query, asked, page_after, typed};
use crate::caller::Caller;
use crate::components::{Fact, Field, any_of, card, empty, error_summary, facts, head, meter, next_link, shown_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Its address.
pub const PATH: &str = "/quotas";

/// Reads and shows them.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let page = caller.ask(asked::<ListQuotas>(&given.query)?).await?;
    let policy = caller.ask(GetQuotaPolicy {}).await?;
    let backings = caller.ask(ListBackings {}).await?;
    let profiles = caller.ask(ListProfiles {}).await?;
    let lines = caller.ask(ListLxcLines {}).await?;
    let kinds = (&policy, &backings, &profiles, &lines);
    let view = quotas_view(&caller.who, kinds, &page, &given.query, &given.form);
    Ok(Page::new("quotas", "Quotas", view))
}

/// The view of plain values.
pub fn quotas_view(
    who: &Principal,
    (policy, backings, profiles, lines): (&QuotaPolicy, &Backings, &Profiles, &AllowedLines),
    page: &QuotaPage,
    query: &Query,
    form: &FormState,
) -> AnyView {
    let below = view! { <span class="quiet">"Counted from a request on until what was asked for is given back"</span> };
    let filtered = ["q", "own"].iter().any(|name| query.get(*name).is_some_and(|text| !text.trim().is_empty()));
    let body = match (page.items.is_empty(), filtered) {
        (false, _) => table(&page.items),
        (true, true) => empty("No project like that", view! { <a class="link" href=PATH>"Show all"</a> }.into_any()),
        (true, false) => empty("No project yet", "What your projects have taken stands here.".into_any()),
    };
    view! {
        {head("Quotas".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {card("policy", "By default", ().into_any(), policy_body(who, policy, &form.of("")))}
        {backings_card(who, backings, form)}
        {profiles_card(who, profiles, &lines.items, form)}
        {lines_card(who, lines, form)}
        {filters(query, filtered)}
        <section class="card" id="live-quotas" data-live="">{body}</section>
        {next_link(page_after(PATH, query, page.next.as_ref()))}
    }
    .into_any()
}

fn policy_body(who: &Principal, policy: &QuotaPolicy, form: &FormState) -> AnyView {
    let text = view! { <p class="body quiet">"What every project may take that has no quota of its own. What a project has stays, also where that is more: then it gets nothing more."</p> };
    if !who.can::<SetQuotaPolicy>(None) {
        let row = |of: &QuotaOf| {
            (title(*of), policy.limit(*of).map_or_else(|| "no limit".to_owned(), |limit| of.amount(limit)).into_any())
        };
        return view! { {facts(QuotaOf::ALL.iter().map(row).collect())}{text} }.into_any();
    }
    let version = form.version(&policy.version);
    let form = &form.unless_too_late();
    let fields = QuotaOf::ALL.iter().map(|of| {
        let limit = policy.limit(*of).map(|limit| said(*of, limit)).unwrap_or_default();
        field(form, *of).suggest(limit).placeholder("no limit").input()
    });
    view! {
        <form method="post" action={to::<SetQuotaPolicy>(&[])} class="form body">
            {shown_at(PATH, "")}
            <input type="hidden" name="_next" value=PATH/>
            <input type="hidden" name="version" value=version/>
            <div class="grid two">{fields.collect_view()}</div>
            <p class="quiet">"What is left empty has no limit."</p>
            <div class="submit"><button class="btn primary">"Set what holds by default"</button></div>
        </form>
        {text}
    }
    .into_any()
}

/// The field of an amount, in a form that sets it.
pub fn field(form: &FormState, of: QuotaOf) -> Field {
    let field = Field::new(form, of.as_str(), title(of));
    match of {
        QuotaOf::Guests => field.number().hint("How many there may be, from their request on"),
        QuotaOf::Memory => field.hint("Such as 512 MiB or 16 GiB: what all its guests may be promised"),
        QuotaOf::Cpu => field.hint("Processors, such as 0.5 or 8, of all its guests"),
        QuotaOf::Storage => field.hint("Such as 100 GB or 2 TB; a guest counts as its node counts it"),
        QuotaOf::Names => field.number().hint("How many may lead to its guests"),
        QuotaOf::Ports => field.number().hint("How many ports of nodes may lead to its guests"),
        QuotaOf::Backups => field.hint("Such as 100 GB or 2 TB: what its repository may take; then no more are taken"),
    }
}

/// An amount as it is typed, to the last byte.
pub fn said(of: QuotaOf, amount: u64) -> String {
    let exact = match of {
        QuotaOf::Guests | QuotaOf::Names | QuotaOf::Ports => None,
        QuotaOf::Memory => MemoryQuota::try_from(amount).ok().map(|one| one.to_string()),
        QuotaOf::Cpu => CpuQuota::try_from(amount).ok().map(|one| one.to_string()),
        QuotaOf::Storage | QuotaOf::Backups => StorageQuota::try_from(amount).ok().map(|one| one.to_string()),
    };
    exact.unwrap_or_else(|| of.amount(amount))
}

/// What it is of, at the head of a row or column.
pub const fn title(of: QuotaOf) -> &'static str {
    match of {
        QuotaOf::Guests => "Guests",
        QuotaOf::Memory => "Memory",
        QuotaOf::Cpu => "CPU",
        QuotaOf::Storage => "Storage",
        QuotaOf::Names => "DNS names",
        QuotaOf::Ports => "Published ports",
        QuotaOf::Backups => "Backups",
    }
}

/// What is taken of each thing, and what is left, as facts.
pub fn uses(quota: &ProjectQuota) -> AnyView {
    let row = |of: &QuotaOf| -> Fact { (title(*of), used(*of, quota.of_thing(*of))) };
    facts(QuotaOf::ALL.iter().map(row).collect())
}

fn used(of: QuotaOf, one: QuotaUse) -> AnyView {
    let own = one.is_own.then_some(", set for this project");
    let taken = of.amount(one.used);
    let Some((limit, left)) = one.limit.zip(one.left) else {
        return view! { {taken}" "<span class="quiet">"no limit"{own}</span> }.into_any();
    };
    let percent = one.used.saturating_mul(100).checked_div(limit).unwrap_or(100).min(100);
    let bar = meter(u8::try_from(percent).unwrap_or(100), &format!("{} taken", title(of)));
    let rest = if left == 0 { "nothing left".to_owned() } else { format!("{} left", of.amount(left)) };
    view! { {bar}" "{format!("{taken} of {}", of.amount(limit))}<span class="quiet">{format!(", {rest}")}{own}</span> }
        .into_any()
}

/// What is left where one asks for some of these things: nothing is said of what has no limit.
pub fn left(quota: &ProjectQuota, of: &[QuotaOf]) -> Option<AnyView> {
    let taken = quota.limited(of)?;
    let page = format!("{}#quota", project_path(&quota.project));
    Some(
        view! { <p class="quiet small taken">{format!("{taken} taken in ")}<a class="link" href=page>{quota.project.to_string()}</a></p> }
            .into_any(),
    )
}

/// What is taken in each project, as a table.
pub fn table(quotas: &[ProjectQuota]) -> AnyView {
    let heads = QuotaOf::ALL.iter().map(|of| view! { <th class="num">{title(*of)}</th> }).collect_view();
    let rows = quotas.iter().map(|quota| {
        let page = format!("{}#quota", project_path(&quota.project));
        let cells = QuotaOf::ALL.iter().map(|of| {
            let one = quota.of_thing(*of);
            let limit = one.limit.map(|limit| format!(" of {}", of.amount(limit)));
            let text = format!("{}{}", of.amount(one.used), limit.unwrap_or_default());
            let own = one.is_own.then(|| view! { <div class="quiet small">{if one.limit.is_some() { "of its own" } else { "no limit" }}</div> });
            view! { <td data-label=title(*of) class="num">{text}{own}</td> }
        });
        view! { <tr><td data-label="Project"><a href=page>{quota.project.to_string()}</a></td>{cells.collect_view()}</tr> }
    });
    view! {
        <table class="rows" aria-label="What projects have taken">
            <thead><tr><th>"Project"</th>{heads}</tr></thead>
            <tbody>{rows.collect_view()}</tbody>
        </table>
    }
    .into_any()
}

fn filters(query: &Query, filtered: bool) -> AnyView {
    let form = typed(query);
    let own = [("true", "of its own"), ("false", "the default")].map(|(word, text)| (word.to_owned(), text.to_owned()));
    let all = filtered.then(|| view! { <a class="btn" href=PATH>"Show all"</a> });
    view! {
        <form method="get" action=PATH class="filters" role="search" aria-label="Quotas">
            {Field::new(&form, "q", "Project has").input()}
            {Field::new(&form, "own", "Quota").select(any_of(own))}
            <div class="actions"><button class="btn">"Filter"</button>{all}</div>
        </form>
    }
    .into_any()
}
