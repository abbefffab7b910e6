//! The style gallery: every page with sample values, on a loopback port, without a controller.
//!
//! `cargo run -p corpus-app --features ssr --example gallery`, then open <http://127.0.0.1:8090/>.
//! A folder with the built `corpus.js` and `corpus_bg.wasm` as its argument brings the islands to life.
//! It is for looking at the pages; what they do is tested against the real parts.

#[path = "gallery/backup_samples.rs"]
mod backup_samples;
#[path = "gallery/image_samples.rs"]
mod image_samples;
#[path = "gallery/samples.rs"]
mod samples;

#[path = "gallery/deployment_samples.rs"]
mod deployment_samples;
#[path = "gallery/project_samples.rs"]
mod project_samples;

#[path = "gallery/firewall_pages.rs"]
mod firewall_pages;
#[path = "gallery/guest_backup_pages.rs"]
mod guest_backup_pages;
#[path = "gallery/image_pages.rs"]
mod image_pages;
#[path = "gallery/leaving_pages.rs"]
mod leaving_pages;
#[path = "gallery/mail_pages.rs"]
mod mail_pages;
#[path = "gallery/preview_samples.rs"]
mod preview_samples;
#[path = "gallery/project_pages.rs"]
mod project_pages;
#[path = "gallery/snapshot_pages.rs"]
mod snapshot_pages;
#[path = "gallery/state_pages.rs"]
mod state_pages;
#[path = "gallery/told_samples.rs"]
mod told_samples;
#[path = "gallery/traffic_pages.rs"]
mod traffic_pages;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::routing::get;
use corpus_api::Cursor;
use corpus_api::audit::AuditPage;
use corpus_api::certificates::CertificatePage;
use corpus_api::guests::GuestPage;
use corpus_api::jobs::JobPage;
use corpus_api::keys::KeyPage;
use corpus_api::mail::{MailChoice, MailRelay};
use corpus_api::names::NamePage;
use corpus_api::nodes::ControlKey;
use corpus_api::notices::NoticePage;
use corpus_api::overview::Overview;
use corpus_api::quotas::QuotaPage;
use corpus_api::requests::RequestPage;
use corpus_api::tokens::TokenPage;
use corpus_app::layout::{Page, alone, framed};
use corpus_app::pages::guest::{Shown, guest_view};
use corpus_app::pages::guest_choice::{Chosen, Deed};
use corpus_app::pages::{self, Asked};
use corpus_app::route::Route;
use corpus_app::{Failure, FormState, Realms, document};
use leptos::prelude::*;
use leptos_meta::Title;

const ADDRESS: &str = "127.0.0.1:8090";

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let options = LeptosOptions::builder().output_name("corpus").build();
    let render = leptos_axum::render_app_async_with_context(
        || (),
        move || document(options.clone(), || view! { <Gallery/> }.into_any()),
    );
    let style =
        || async { ([(CONTENT_TYPE, "text/css")], std::fs::read_to_string("style/corpus.css").unwrap_or_default()) };
    let folder = std::env::args().nth(1).unwrap_or_default();
    let built = move |axum::extract::Path(file): axum::extract::Path<String>| async move {
        let kind = if std::path::Path::new(&file).extension().is_some_and(|kind| kind == "wasm") {
            "application/wasm"
        } else {
            "text/javascript"
        };
        ([(CONTENT_TYPE, kind)], std::fs::read(format!("{folder}/{file}")).unwrap_or_default())
    };
    let app = Router::new().route("/pkg/corpus.css", get(style)).route("/pkg/{file}", get(built)).fallback(render);
    axum::serve(tokio::net::TcpListener::bind(ADDRESS).await?, app).await
}

#[component]
fn Gallery() -> impl IntoView {
    let uri = use_context::<Parts>().map(|parts| parts.uri).unwrap_or_default();
    let (path, variant) = (uri.path().to_owned(), uri.query().unwrap_or_default().to_owned());
    let page = page(&path, &variant);
    let title = page.title();
    let view = if path == "/login" {
        alone(page)
    } else {
        framed(page, &Route::of(&path), &path, &samples::operator(), &samples::counts())
    };
    view! { <Title text=title/>{view} }
}

fn form(form: &str, values: &[(&str, &str)]) -> FormState {
    FormState::new(form, values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

#[expect(clippy::too_many_lines, reason = "a table of pages")]
fn page(path: &str, variant: &str) -> Page {
    let who = samples::operator();
    let none = FormState::default();
    let (nodes, guests, jobs) = (samples::node_lines(), samples::lines(), samples::jobs());
    let empty = variant == "empty";
    let claims = [samples::claim()];
    let some = |count: usize| if empty { 0 } else { count };
    match path {
        "/login" => {
            let refused = form("", &[("login", "dev.lead")]).status(401).message("Login name or password is wrong");
            pages::login::page(
                &Asked { form: if variant == "wrong" { refused } else { none }, ..Asked::default() },
                Realms { ldap: true },
            )
        }
        "/" => {
            let counts = samples::counts();
            let overview = if empty { Overview { counts, ..Overview::default() } } else { samples::overview() };
            let body = pages::overview::overview_view(
                &who,
                &overview,
                &pages::overview::Nodes {
                    not_created: &[],
                    first: nodes.get(..some(5)).unwrap_or_default(),
                    wrong: nodes.get(..some(5)).unwrap_or_default(),
                },
                project_samples::deployments().get(..some(4)).unwrap_or_default(),
                &if empty { samples::first_steps(who.ops) } else { corpus_api::first_steps::FirstSteps::default() },
            );
            Page::new("overview", "Overview", body)
        }
        "/nodes" => Page::new(
            "nodes",
            "Compute nodes",
            pages::nodes::nodes_view(&who, &samples::node_page(some(5)), &[], &samples::listing()),
        ),
        "/nodes/link" => {
            let second = form(
                "",
                &[
                    ("address", "node-10.lyon.example.net"),
                    ("port", "22"),
                    ("user", "root"),
                    ("environments", "dev"),
                    ("host_key", "ssh-ed25519 AAAA"),
                    ("_fingerprint", samples::FINGERPRINT),
                    ("_algorithm", "ssh-ed25519"),
                ],
            )
            .status(200);
            let gateway = form(
                "",
                &[
                    ("address", "10.7.0.12"),
                    ("gateway_address", "bastion.example.org"),
                    ("gateway_user", "hop"),
                    ("gateway_host_key", samples::KEY),
                    ("_gateway_fingerprint", samples::FINGERPRINT),
                    ("_gateway_algorithm", "ssh-ed25519"),
                ],
            )
            .status(200);
            let wrong = form("", &[("address", "node-10;reboot"), ("port", "22"), ("user", "root")])
                .error(
                    "address",
                    "address \"node-10;reboot\" is not valid: a host name such as node-01.example.org or an IP address",
                )
                .error("environments", "Choose at least one environment that the node takes guests of.");
            let line = samples::KEY.to_owned();
            let gateway_line =
                (variant == "gateway").then(|| format!("restrict,port-forwarding,permitopen=\"10.7.0.12:*\" {line}"));
            let key = ControlKey { line, gateway_line };
            let state = match variant {
                "second" => second,
                "gateway" => gateway,
                "wrong" => wrong,
                _ => none,
            };
            Page::new("link-node", "Link a compute node", pages::link::link_view(&key, &state))
                .under("Compute nodes", "/nodes")
        }
        "/guests" => {
            let items = guests.get(..some(4)).unwrap_or_default().to_vec();
            let next = (!items.is_empty()).then(|| Cursor::after("guests", &1));
            let counts = if empty { corpus_api::overview::Counts::default() } else { samples::counts() };
            let page = GuestPage { items, next };
            let listing = if variant == "asked" { samples::listing_asked() } else { samples::listing() };
            Page::new("guests", "Guests", pages::guests::guests_view(&who, &page, &counts, &[], &listing))
        }
        "/guests/new" => {
            let wrong = form("", &[("name", "www"), ("environment", "dev"), ("ip", "10.6.0.1")])
                .error("name", "guest name \"www\" is not valid: a full host name such as www.example.org")
                .error("ip", "10.6.0.1 is outside of 10.5.0.0/16");
            Page::new(
                "request-guest",
                "Request a guest",
                pages::request::request_view(
                    &who,
                    pages::request::Choices {
                        nodes: &nodes,
                        projects: &samples::projects(),
                        profiles: &samples::profiles(),
                        lines: &samples::lxc_lines().items,
                        sizes: &samples::sizes(),
                        may_create: false,
                        operators: None,
                        quotas: &[samples::quota()],
                    },
                    if variant == "wrong" { &wrong } else { &none },
                    "0",
                ),
            )
            .under("Guests", "/guests")
        }
        "/guests/choice" => {
            let guests = samples::guests();
            let left_out = guests.get(1).cloned().map(Box::new);
            let chosen = guests.first().cloned().map(|guest| Chosen::Can(Box::new(guest))).into_iter();
            let chosen = chosen.chain(left_out.map(|guest| Chosen::Cannot(guest, "It is stopped already.".to_owned())));
            let chosen: Vec<Chosen> = chosen.chain([Chosen::Missing]).collect();
            let deed = Deed::of(variant).unwrap_or(Deed::Stop);
            let view = pages::guest_choice::choice_view(deed, &chosen, &none, "0");
            Page::new("guest-choice", "Guests", view).under("Guests", "/guests")
        }
        "/dns" => Page::new(
            "dns",
            "DNS",
            pages::dns::dns_view(
                &who,
                samples::zones().get(..some(2)).unwrap_or_default(),
                &if empty { NamePage::default() } else { samples::names() },
                &guests.iter().map(|guest| guest.name.clone()).collect::<Vec<_>>(),
                pages::dns::Beside {
                    claims: if empty { &[] } else { &claims },
                    servers: &[corpus_domain::ProviderName::first()],
                    ..pages::dns::Beside::default()
                },
                &samples::listing(),
            ),
        ),
        "/names/00000000-0000-0000-0000-00000000003d" => {
            let wrong = form("upload", &[("chain", "-----BEGIN CERTIFICATE-----")]).error(
                "private_key",
                "The private key is not the certificate's: upload the key that the certificate was asked for with.",
            );
            let (name, served, authority) = samples::certificate(variant == "failed");
            let aliases = samples::aliases(&name);
            let shown = pages::name::Shown {
                name: &name,
                aliases: if empty { &[] } else { &aliases },
                served: &served,
                authority: Some(&authority),
                ends: &samples::ends(),
                may_change: true,
                form: if variant == "wrong" { &wrong } else { &none },
            };
            Page::new("name", name.shown(), pages::name::name_view(&shown)).under("DNS", "/dns")
        }
        "/certificates" => {
            let page = if empty { CertificatePage::default() } else { samples::certificates() };
            Page::new(
                "certificates",
                "Certificates",
                pages::certificates::certificates_view(&page, &std::collections::BTreeMap::new()),
            )
        }
        "/name-claims/00000000-0000-0000-0000-00000000005f" => {
            let claim = samples::claim();
            let view = pages::name_claim::claim_view(&claim, true, &none);
            Page::new("name-claim", claim.name.to_string(), view).under("DNS", "/dns")
        }
        "/dns/zones/00000000-0000-0000-0000-000000000047" => {
            let wrong = form("", &[("access", "only"), ("projects", "nobody")])
                .error("projects", "There is no project nobody.");
            let zone = samples::zones().remove(0);
            let view = pages::zone::zone_view(&zone, if variant == "wrong" { &wrong } else { &none });
            Page::new("zone", zone.name.to_string(), view).under("DNS", "/dns")
        }
        "/jobs" => {
            let items = jobs.get(..some(6)).unwrap_or_default().to_vec();
            let next = (!items.is_empty()).then(|| Cursor::after("jobs", &1));
            Page::new("jobs", "Jobs", pages::jobs::jobs_view(&JobPage { items, next }, &samples::listing()))
        }
        "/keys" => Page::new(
            "keys",
            "SSH keys",
            pages::keys::keys_view(
                &if empty { KeyPage::default() } else { samples::keys() },
                &samples::undoes(),
                &none,
            ),
        ),
        "/keys/claim/0199d3c0-0000-7000-8000-000000000090" => {
            let wrong = form("", &[("signature", "-----BEGIN SSH SIGNATURE-----")])
                .error("signature", "this is no signature, or only a part of one: paste all lines, from BEGIN SSH SIGNATURE to END SSH SIGNATURE");
            let state = if variant == "wrong" { &wrong } else { &none };
            Page::new(
                "key-claim",
                "Show that the key is yours",
                pages::key_claim::claim_view(&samples::key_claim(), state),
            )
            .under("SSH keys", "/keys")
        }
        "/notices" => {
            let page = if empty { NoticePage::default() } else { samples::notices() };
            Page::new("notices", "Notices", pages::notices::notices_view(&page, true))
        }
        "/tokens" => {
            let page = if empty { TokenPage::default() } else { samples::tokens() };
            let new = (variant == "new").then(samples::new_token);
            Page::new("tokens", "Tokens", pages::tokens::tokens_view(&page, new.as_ref(), &none))
        }
        "/mail" => {
            let choice = MailChoice::of(corpus_domain::MailPreference::Own);
            let relay = MailRelay {
                waiting: 3,
                failing: 2,
                error: Some("the relay refused the login: permanent error (535): authentication failed".into()),
                given_up: 1,
                sent_at: Some(chrono::Utc::now() - chrono::TimeDelta::hours(5)),
            };
            Page::new("mail", "Mail", pages::mail::mail_view(&choice, Some(&relay), &none))
        }
        "/requests" => {
            let items = if empty { vec![] } else { samples::requests() };
            let (page, query) = (RequestPage { items, next: None }, corpus_app::asked::Query::new());
            Page::new("requests", "Requests", pages::requests::requests_view(&who, &page, &query))
        }
        "/requests/rules" => {
            let rules = if empty { vec![] } else { samples::request_rules() };
            Page::new("request-rules", "Rules", pages::request_rules::rules_view(&rules, &none))
                .under("Requests", "/requests")
        }
        "/requests/0199d3c0-0000-7000-8000-000000000001" => {
            let request = samples::request(variant != "refused");
            let outlook = pages::request_detail::Outlook {
                quota: Some(samples::quota()),
                ..pages::request_detail::Outlook::default()
            };
            let view = pages::request_detail::request_view(&request, &outlook, &none);
            Page::new("one-request", request.line.title.clone(), view).under("Requests", "/requests")
        }
        "/projects/new/ask" => Page::new("ask-project", "Ask for a project", pages::request_ask::project_view(&none)),
        "/nodes/link/ask" => Page::new("ask-node", "Ask for a compute node", pages::request_ask::node_view(&none)),
        "/quotas" => {
            let page = QuotaPage { items: if empty { vec![] } else { vec![samples::quota()] }, next: None };
            let (policy, query) = (samples::quota_policy(), corpus_app::asked::Query::new());
            Page::new(
                "quotas",
                "Quotas",
                pages::quotas::quotas_view(
                    &who,
                    (&policy, &samples::backings(), &samples::profiles(), &samples::lxc_lines()),
                    &page,
                    &query,
                    &none,
                ),
            )
        }
        "/audit" => {
            let page = AuditPage { items: samples::audit(), next: Some(Cursor::after("audit", &1)) };
            Page::new(
                "audit",
                "Audit",
                pages::audit::audit_view(&samples::operator(), &page, &samples::refused_logins(), &samples::listing()),
            )
        }
        "/images" => Page::new("images", "Images", pages::images::images_view(&image_samples::of_controller(empty))),
        "/controller-backups" => {
            let view = pages::controller_backups::backups_view(&backup_samples::of_controller(empty), &none);
            Page::new("controller-backups", "Backups of Corpus", view)
        }
        "/hooks" => Page::new("hooks", "Hooks", pages::hooks::hooks_view(&samples::hooks(empty))),
        "/hooks/guest/guest.ping.after/10-monitoring" => {
            let view = pages::hooks::hook_view(&samples::hook());
            Page::new("hook", "guest/guest.ping.after/10-monitoring", view).under("Hooks", "/hooks")
        }
        "/denied" => pages::error::page(&Failure {
            status: 403,
            title: "Not permitted".into(),
            message: "Your roles do not allow this.".into(),
        }),
        _ => with_id(path, variant),
    }
}

fn with_id(path: &str, variant: &str) -> Page {
    let (who, blank, jobs) = (samples::operator(), FormState::default(), samples::jobs());
    if let Some(page) = project_pages::page(&Route::of(path), variant) {
        return page;
    }
    if let Some(page) = firewall_pages::page(&Route::of(path), variant) {
        return page;
    }
    if let Some(page) = traffic_pages::page(&Route::of(path), variant) {
        return page;
    }
    if let Some(page) = state_pages::page(&Route::of(path), variant) {
        return page;
    }
    if let Some(page) = mail_pages::page(&Route::of(path), variant) {
        return page;
    }
    if let Some(page) = guest_backup_pages::page(&Route::of(path), variant) {
        return page;
    }
    if let Some(page) = image_pages::page(&Route::of(path), variant) {
        return page;
    }
    if let Some(page) = leaving_pages::page(&Route::of(path), variant) {
        return page;
    }
    if let Some(page) = snapshot_pages::page(&Route::of(path), variant) {
        return page;
    }
    if let Some(page) = documentation(path, variant) {
        return page;
    }
    let (nodes, guests, lines) = (samples::nodes(), samples::guests(), samples::lines());
    let at = variant.parse::<usize>().unwrap_or(0);
    match (Route::of(path), nodes.get(at), guests.get(at), samples::job_details().get(at)) {
        (Route::Node(_), Some(node), _, _) => Page::new(
            "node",
            node.line.address.to_string(),
            pages::node::node_view(&who, node, lines.get(..2).unwrap_or_default(), &jobs, &blank),
        )
        .under("Compute nodes", "/nodes"),
        (Route::UnlinkNode(_), Some(node), _, _) => {
            Page::new("unlink-node", "Unlink", pages::unlink::unlink_view(&node.line, &lines, &blank))
        }
        (Route::MoveGuest(_), _, Some(guest), _) => {
            let (nodes, preview) = (samples::node_lines(), leaving_pages::preview(at));
            let shown =
                pages::move_guest::Shown { guest, nodes: &nodes, snapshots: at, preview: &preview, form: &blank };
            Page::new("move-guest", "Move", pages::move_guest::move_view(&shown))
        }
        (Route::DestroyGuest(_), _, Some(guest), _) => {
            Page::new("destroy-guest", "Destroy", pages::destroy::destroy_view(guest, &blank))
        }
        (Route::Guest(_), _, Some(guest), _) => {
            let password = (at == 1).then_some("correct-horse-battery");
            let (zones, quota) = (samples::zones(), samples::quota());
            let shown = Shown {
                guest,
                zones: &zones,
                quota: &quota,
                lines: &samples::lxc_lines().items,
                jobs: &jobs,
                undoes: &[],
                asks: false,
                form: &blank,
                password,
            };
            Page::new("guest", guest.line.name.to_string(), guest_view(&shown)).under("Guests", "/guests")
        }
        (Route::Job(_), _, _, Some(job)) => {
            Page::new("job", job.line.title.clone(), pages::job::job_view(job, &samples::log(), &blank))
                .under("Jobs", "/jobs")
        }
        _ => pages::error::page(&Failure {
            status: 404,
            title: "Not found".into(),
            message: "There is no page at this address.".into(),
        }),
    }
}

fn documentation(path: &str, query: &str) -> Option<Page> {
    match Route::of(path) {
        Route::Docs => Some(pages::docs::load(&form_urlencoded::parse(query.as_bytes()).into_owned().collect())),
        Route::Document(name) => pages::docs::load_one(&name).ok(),
        Route::Search => {
            let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            let found = corpus_api::search::Found::default();
            Some(Page::new("search", "Search", pages::search::search_view(&query, Some(&found))))
        }
        _ => None,
    }
}
