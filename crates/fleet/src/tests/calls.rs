//! Requests over the pooled line: many at once, cancelled, cut, answered with rubbish.

use std::sync::Arc;
use std::time::{Duration, Instant};

use corpus_protocol::{Answer, ErrorKind, Event, Request};
use futures::future::join_all;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::proxy::{Proxy, black_hole, until};
use crate::testing::sshd::{free_port, order, start};
use crate::{Call, NodeError, Pool};

fn read() -> Call {
    Call::new(Request::Read, Duration::from_secs(5))
}

#[tokio::test]
async fn eight_at_once_share_one_connection() {
    let sshd = start();
    sshd.let_in("root");
    let (pool, node) = (sshd.pool().await, sshd.endpoint("root"));
    pool.line(&node).await.unwrap();
    let began = Instant::now();
    let answers = join_all((0..8).map(|_| pool.call(&node, order("slow"), drop))).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Answer::Done { changed: true }))), "{answers:?}");
    assert!(began.elapsed() < Duration::from_millis(900), "{:?}", began.elapsed());
    assert_eq!(sshd.log().matches("Accepted publickey").count(), 1, "{}", sshd.log());
}

#[tokio::test]
async fn cold_callers_share_one_attempt_and_a_sudo_account_works() {
    let sshd = start();
    sshd.let_in("admin");
    let (pool, node) = (sshd.pool().await, sshd.endpoint("admin"));
    let answers = join_all((0..8).map(|_| pool.call(&node, read(), drop))).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Answer::Reading(_)))), "{answers:?}");
    assert_eq!(sshd.log().matches("Accepted publickey").count(), 1, "{}", sshd.log());
}

#[tokio::test]
async fn events_come_in_order_and_errors_keep_their_kind() {
    let sshd = start();
    sshd.let_in("root");
    let (pool, node) = (sshd.pool().await, sshd.endpoint("root"));
    let mut seen = Vec::new();
    pool.call(&node, order("noisy"), |event| seen.push(event)).await.unwrap();
    let texts: Vec<_> = seen
        .into_iter()
        .map(|event| match event {
            Event::Log { text, .. } => text,
            Event::Progress { .. } | Event::Deployment { .. } | Event::Access { .. } => {
                panic!("only log lines were sent")
            }
        })
        .collect();
    assert_eq!(texts, ["line 1", "line 2", "line 3"]);
    let busy = pool.call(&node, order("busy"), drop).await.unwrap_err();
    assert!(matches!(&busy, NodeError::Remote(error) if error.kind == ErrorKind::Busy) && busy.is_transient());
}

#[tokio::test]
async fn a_host_that_floods_waits_for_who_listens() {
    let sshd = start();
    sshd.let_in("root");
    let (pool, node) = (sshd.pool().await, sshd.endpoint("root"));
    let path = sshd.dir.path().join("flooded");
    let said =
        || std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or_default();
    let (to, mut events) = mpsc::channel(1);
    let call = tokio::spawn(async move { pool.call_to(&node, order("flood"), to).await });
    until("it floods", || said() > 0).await;
    let mut before = 0;
    while said() > before {
        before = said();
        assert!(before * 60_000 < 64 << 20, "{before} lines of 60 kB are somewhere, and nobody has taken one");
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    for number in 0..before + 100 {
        let Some(Event::Log { text, .. }) = events.recv().await else { panic!("line {number} is lost") };
        assert!(text.starts_with(&format!("{number} x")) && text.chars().count() == 4_096, "{}", &text[..20]);
    }
    call.abort();
}

#[tokio::test]
async fn an_answer_to_what_was_never_asked_ends_the_line_and_not_more() {
    let sshd = start();
    sshd.let_in("root");
    let (pool, node) = (sshd.pool().await, sshd.endpoint("root"));
    let lied = pool.call(&node, order("liar"), drop).await.unwrap_err();
    assert!(lied.to_string().contains("request 999, which was never sent"), "{lied}");
    pool.call(&node, read(), drop).await.unwrap();
}

#[tokio::test]
async fn what_nobody_waits_for_is_cancelled_on_the_host() {
    let sshd = start();
    sshd.let_in("root");
    let (pool, node) = (sshd.pool().await, sshd.endpoint("root"));
    pool.line(&node).await.unwrap();

    let dropped = tokio::time::timeout(Duration::from_millis(100), pool.call(&node, order("hang"), drop)).await;
    assert!(dropped.is_err());
    until("request 1 is cancelled", || sshd.dir.path().join("cancelled.1").exists()).await;

    let token = CancellationToken::new();
    let call = pool.call(&node, order("hang").cancelled_by(token.clone()), drop);
    let (ended, ()) = tokio::join!(call, async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        token.cancel();
    });
    assert!(matches!(ended, Err(NodeError::Cancelled { .. })), "{ended:?}");
    assert!(sshd.dir.path().join("cancelled.2").exists());

    let name = "hang.test".parse().unwrap();
    let short = Call::new(Request::EnsureRunning { name }, Duration::from_millis(50));
    let late = pool.call(&node, short, drop).await.unwrap_err();
    assert!(matches!(late, NodeError::TimedOut { .. }), "{late:?}");
    assert!(sshd.dir.path().join("cancelled.3").exists());
    pool.call(&node, read(), drop).await.unwrap();
}

#[tokio::test]
async fn a_cut_line_fails_its_calls_at_once_and_is_made_again() {
    let sshd = start();
    sshd.let_in("root");
    let proxy = Proxy::to(sshd.port).await;
    let (pool, node) = (sshd.pool().await, sshd.endpoint_at("root", proxy.port));
    for by_proxy in [true, false] {
        pool.line(&node).await.unwrap();
        let calls = join_all((0..3).map(|_| pool.call(&node, order("hang"), drop)));
        let (ended, cut) = tokio::join!(calls, async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if by_proxy {
                proxy.cut();
            } else {
                sshd.cut();
            }
            Instant::now()
        });
        assert!(cut.elapsed() < Duration::from_millis(500), "{:?}", cut.elapsed());
        for end in ended {
            let error = end.unwrap_err();
            assert!(matches!(error, NodeError::Disconnected { .. }), "{error:?}");
            assert!(error.is_transient() && error.is_in_doubt());
        }
        pool.call(&node, read(), drop).await.unwrap();
    }
}

#[tokio::test]
async fn an_agent_that_misbehaves_is_told_with_what_it_said() {
    let sshd = start();
    sshd.let_in("root");
    let (pool, node) = (sshd.pool().await, sshd.endpoint("root"));
    let rubbish = pool.call(&node, order("rubbish"), drop).await.unwrap_err();
    assert!(matches!(&rubbish, NodeError::Protocol { what, .. } if what.contains("Welcome to")), "{rubbish:?}");
    let endless = pool.call(&node, order("endless"), drop).await.unwrap_err();
    assert!(matches!(&endless, NodeError::Protocol { what, .. } if what.contains("line")), "{endless:?}");
    let died = pool.call(&node, order("die"), drop).await.unwrap_err();
    let NodeError::AgentEnded { reason, stderr, .. } = &died else { panic!("{died:?}") };
    assert_eq!((reason.as_str(), stderr.join("\n").as_str()), ("exit status 3", "out of memory"));
    assert!(died.to_string().contains("out of memory") && died.is_transient());
    pool.call(&node, read(), drop).await.unwrap();
}

#[tokio::test]
async fn a_wrong_hello_is_refused() {
    let sshd = start();
    sshd.let_in("root");
    let node = sshd.endpoint("root");
    let version = corpus_protocol::VERSION;
    let plain = format!("echo '{{\"type\":\"hello\",\"version\":{version},\"root\":false}}'; cat");
    for (said, expected) in [
        ("echo '{\"type\":\"hello\",\"version\":99,\"root\":true}'; cat", "version 99"),
        ("echo Hi; cat", "\"Hi\" instead of hello"),
        (plain.as_str(), "neither root"),
        ("echo 'no room' >&2; exit 7", "exit status 7; it said: no room"),
    ] {
        let path = sshd.dir.path().join("other");
        crate::testing::sshd::write(&path, &format!("#!/bin/sh\n{said}\n"), 0o755);
        let agent = crate::AgentBinary::load(&path).await.unwrap();
        let error = Pool::new(sshd.key.clone(), agent).line(&node).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_node_that_just_failed_is_left_alone() {
    let sshd = start();
    let (port, silent) = black_hole().await;
    let (pool, node) = (sshd.pool().await, sshd.endpoint_at("root", free_port()));
    assert!(matches!(pool.line(&node).await, Err(NodeError::Refused { .. })));
    let began = Instant::now();
    for _ in 0..1000 {
        assert!(matches!(pool.line(&node).await, Err(NodeError::Refused { .. })));
    }
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());

    // Cancelling works while the node is being connected; forgetting ends the waiting.
    let dead = sshd.endpoint_at("root", port);
    let token = CancellationToken::new();
    token.cancel();
    let cancelled = pool.call(&dead, read().cancelled_by(token), drop).await;
    assert!(matches!(cancelled, Err(NodeError::Cancelled { .. })), "{cancelled:?}");
    silent.abort();
}

#[tokio::test]
async fn a_forgotten_node_is_disconnected() {
    let sshd = start();
    sshd.let_in("root");
    let (pool, node) = (sshd.pool().await, sshd.endpoint("root"));
    pool.line(&node).await.unwrap();
    let (ended, ()) = tokio::join!(pool.call(&node, order("hang"), drop), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        pool.forget(node.id);
    });
    assert!(matches!(ended, Err(NodeError::Disconnected { .. })), "{ended:?}");
}

#[tokio::test]
async fn a_dropped_pool_leaves_nothing_on_the_host() {
    let sshd = start();
    sshd.let_in("root");
    let pool = sshd.pool().await;
    pool.call(&sshd.endpoint("root"), read(), drop).await.unwrap();
    assert_eq!(sshd.connections().len(), 1);
    drop(pool);
    until("the connection is closed", || sshd.connections().is_empty()).await;
}

#[tokio::test]
async fn who_only_looks_brings_no_agent_to_a_host_that_is_not_linked_any_more() {
    let sshd = start();
    sshd.let_in("root");
    let node = sshd.endpoint("root");
    let agent = sshd.agent().await;
    let there = sshd.inside(&agent.path_on_node());
    let pool = Pool::asking(sshd.key.clone(), agent, Arc::new(|_| Box::pin(std::future::ready(false))));
    let refused = pool.call(&node, read().observing(), drop).await.unwrap_err();
    assert!(matches!(refused, NodeError::Forgotten { .. }), "{refused:?}");
    assert!(!there.exists());
    // A job may have to do there; where its agent is then, one may look.
    pool.call(&node, read(), drop).await.unwrap();
    assert!(there.exists());
    pool.call(&node, read().observing(), drop).await.unwrap();
}
