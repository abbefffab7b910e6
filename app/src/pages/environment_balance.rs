//! The names of an environment: who of its guests serves them, and why not the others; a name more, a name that is
//! switched here from another guest or environment, and how requests are spread.

use corpus_api::environments::EnvironmentSummary;
use corpus_api::environments::balance::{
    AttachEnvironmentName, Balance, BalanceMember, BalancedName, GetBalance, SetBalance,
};
use corpus_api::names::{DetachName, ListNames, NameLine, SwitchName};
use corpus_api::words::Limit;
use corpus_domain::{BalancePolicy, Environment, NameState, ProjectName, Stickiness};
use leptos::prelude::*;

use super::project_environments::environment_path;
use crate::caller::Caller;
use crate::components::{Field, Tone, age, card, confirm_at, count, empty, status, stays_at};
use crate::form::{FormState, Result, sentence};
use crate::to::to;

/// Names that lead elsewhere, which can be switched from here.
const ELSEWHERE: u64 = 20;

/// What the card shows.
#[derive(Debug, Clone)]
pub struct SharedNames {
    /// The environment's own names and guests.
    pub balance: Balance,
    /// Attached names of the project that lead to something else; none for who may not switch them.
    pub elsewhere: Vec<NameLine>,
}

/// Reads it.
pub async fn read(
    caller: &Caller,
    (project, environment): (&ProjectName, Environment),
    may_change: bool,
) -> Result<SharedNames> {
    let balance = caller.ask(GetBalance { project: project.clone(), environment }).await?;
    let attached = ListNames {
        project: Some(project.clone()),
        state: Some(NameState::Attached),
        limit: Limit::try_from(ELSEWHERE).ok(),
        ..ListNames::default()
    };
    let elsewhere = if may_change { caller.ask(attached).await?.items } else { Vec::new() };
    // An alias is switched with its name.
    let can_be_switched =
        |name: &NameLine| !name.wildcard && name.alias_of.is_none() && name.environment != Some(environment);
    let elsewhere = elsewhere.into_iter().filter(can_be_switched).collect();
    Ok(SharedNames { balance, elsewhere })
}

/// The card.
pub fn names_card(one: &EnvironmentSummary, shared: &SharedNames, form: &FormState) -> AnyView {
    let balance = &shared.balance;
    let right = balance.is_shared().then(|| {
        let serve = balance.members.iter().filter(|member| member.in_balance).count();
        let text = format!("{serve} of {} serve them", count(balance.members.len(), "guest"));
        view! { <span class="quiet">{text}</span> }.into_any()
    });
    let members = balance.is_shared().then(|| members(&balance.members));
    let change = one.may_change.then(|| {
        view! {
            {attach(one, &form.of("attach-name"))}
            {elsewhere(one, &shared.elsewhere)}
            {(!one.followers.is_empty()).then(|| spread(one, balance, &form.of("balance")))}
        }
    });
    let body = view! { <div id="live-balance" data-live="">{names(one, &balance.names)}{members}</div>{change} };
    card("balance", "Names", right.into_any(), body.into_any())
}

fn names(one: &EnvironmentSummary, names: &[BalancedName]) -> AnyView {
    if names.is_empty() {
        return empty(
            "No name of its own",
            "One that is attached here leads to all its guests: no visitor waits for a deployment.".into_any(),
        );
    }
    let page = environment_path(&one.project, one.environment);
    let items = names
        .iter()
        .map(|name| {
            let detach = one.may_change.then(|| {
                let question = format!("{} leads nowhere then.", name.name);
                let hidden = stays_at(&page, "names");
                confirm_at("Detach name", name.name.as_str(), question, to::<DetachName>(&[&name.id]), hidden)
            });
            view! { <li><a class="link" href=format!("http://{}/", name.name)>{name.name.to_string()}</a>{detach}</li> }
        })
        .collect_view();
    view! { <ul class="items" aria-label="Names of the environment">{items}</ul> }.into_any()
}

fn members(members: &[BalanceMember]) -> AnyView {
    let rows = members
        .iter()
        .map(|member| {
            let (tone, word) = if member.in_balance { (Tone::Ok, "In balance") } else { (Tone::Off, "Out") };
            let why = member.why.as_deref().map(|why| view! { <div class="quiet small">{sentence(why)}</div> });
            let since = member.since.map(|at| view! { <div class="quiet small">"since "{age(at)}</div> });
            let requests = member.requests.map_or_else(|| "not read".to_owned(), |requests| requests.to_string());
            let read = member.seen_at.map(|at| view! { <div class="quiet small">"read "{age(at)}</div> });
            view! {
                <tr data-member=member.name.to_string() data-in=member.in_balance.then_some("")>
                    <td data-label="Guest"><a href=format!("/guests/{}", member.guest)>{member.name.to_string()}</a></td>
                    <td data-label="State">{status(tone, word)}{why}{since}</td>
                    <td data-label="Requests now">{requests}{read}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Guests that serve the names">
            <thead><tr><th>"Guest"</th><th>"State"</th><th>"Requests now"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn attach(one: &EnvironmentSummary, form: &FormState) -> AnyView {
    view! {
        <form method="post" action={to::<AttachEnvironmentName>(&[&one.project, &one.environment])} class="form body">
            {stays_at(&environment_path(&one.project, one.environment), "attach-name")}
            {Field::new(form, "name", "DNS name").required().mono().hint("It leads to all guests of the environment.").input()}
            <div><button class="btn">"Attach name"</button></div>
        </form>
    }
    .into_any()
}

/// Names that lead elsewhere: each can lead here in one step.
fn elsewhere(one: &EnvironmentSummary, names: &[NameLine]) -> Option<AnyView> {
    let page = environment_path(&one.project, one.environment);
    let items = names
        .iter()
        .map(|name| {
            let now = name.environment.map_or_else(|| name.guest_name.to_string(), |environment| environment.to_string());
            let question = format!(
                "{} leads to {now} now. It is asked here first, and then leads here in one step; no request is lost, and it can be undone.",
                name.name
            );
            let environment = one.environment.to_string();
            let hidden =
                view! { {stays_at(&page, "switch")}<input type="hidden" name="environment" value=environment/> };
            let post = to::<SwitchName>(&[&name.id]);
            view! {
                <li>
                    <div>{name.name.to_string()}<div class="quiet small">{format!("leads to {now}")}</div></div>
                    {confirm_at("Switch name", name.name.as_str(), question, post, hidden.into_any())}
                </li>
            }
        })
        .collect_view();
    (!names.is_empty()).then(|| {
        view! {
            <details class="more body">
                <summary>"Switch a name here"</summary>
                <ul class="items">{items}</ul>
            </details>
        }
        .into_any()
    })
}

fn spread(one: &EnvironmentSummary, balance: &Balance, form: &FormState) -> AnyView {
    let policies = BalancePolicy::ALL.iter().map(|one| (one.to_string(), policy_words(*one).to_owned())).collect();
    let ways = Stickiness::ALL.iter().map(|one| (one.to_string(), sticky_words(*one).to_owned())).collect();
    view! {
        <form method="post" action={to::<SetBalance>(&[&one.project, &one.environment])} class="form body foot">
            {stays_at(&environment_path(&one.project, one.environment), "balance")}
            <input type="hidden" name="version" value=form.version(&balance.version)/>
            {Field::new(form, "policy", "Next request").suggest(balance.policy.as_str()).select(policies)}
            {Field::new(form, "stickiness", "A visitor comes back").suggest(balance.stickiness.as_str()).select(ways)}
            <div><button class="btn">"Save balance"</button></div>
        </form>
    }
    .into_any()
}

const fn policy_words(policy: BalancePolicy) -> &'static str {
    match policy {
        BalancePolicy::RoundRobin => "to one guest after the other",
        BalancePolicy::FewestConnections => "to the guest with the fewest under way",
    }
}

const fn sticky_words(way: Stickiness) -> &'static str {
    match way {
        Stickiness::None => "to any guest",
        Stickiness::Cookie => "to the same guest, by a cookie",
        Stickiness::Source => "to the same guest, by their address",
    }
}
