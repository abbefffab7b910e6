//! What a node that was taken over can have of certificates: those that it serves, and nothing by asking for others.

use std::collections::BTreeSet;
use std::sync::Mutex;

use corpus_domain::{CertificateId, DnsNameId, Environment, NodeId};
use corpus_protocol::{Answer, Request, ServedCertificate};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::World;
use crate::store::certificates::of_node;

/// Two nodes, of which each serves a name of its own.
struct Two {
    world: World,
    names: [DnsNameId; 2],
    nodes: [NodeId; 2],
}

impl Two {
    async fn new(db: PgPool) -> Self {
        let world = World::new(db).await;
        let mut mia = world.member("mia", &[]).await;
        let project = world.project(&mut mia, "shop").await;
        let nodes = [world.node_id(), NodeId(Uuid::now_v7())];
        sqlx::query(
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
             select $1, '192.0.2.2', ssh_port, ssh_user, host_key, environments, state, '10.6.0.1/16', bridge from nodes",
        )
        .bind(nodes[1].0)
        .execute(&world.db)
        .await
        .unwrap();
        let mut names = Vec::new();
        for (node, name) in nodes.iter().zip(["mine.example.org", "theirs.example.org"]) {
            let guest = world.guest(project, Environment::Dev).await;
            let id = DnsNameId(Uuid::now_v7());
            sqlx::query("update guests set node_id = $2 where id = $1")
                .bind(guest.0)
                .bind(node.0)
                .execute(&world.db)
                .await
                .unwrap();
            sqlx::query(
                "insert into dns_names (id, name, guest_id, state, routed) values ($1, $2, $3, 'attached', true)",
            )
            .bind(id.0)
            .bind(name)
            .bind(guest.0)
            .execute(&world.db)
            .await
            .unwrap();
            names.push(id);
        }
        let two = Self { world, names: [names[0], names[1]], nodes };
        two.sign(0, "mine.example.org").await;
        two.sign(1, "theirs.example.org").await;
        two
    }

    async fn sign(&self, at: usize, name: &str) -> CertificateId {
        let services = &self.world.controller.services;
        let mut tx = services.begin().await.unwrap();
        let id = services.sign_certificate(&mut tx, self.names[at], name.parse().unwrap()).await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    async fn served(&self, at: usize) -> Vec<ServedCertificate> {
        of_node(&mut self.world.db.acquire().await.unwrap(), self.nodes[at]).await.unwrap()
    }

    /// What is sent to a node that is given these to serve and says that it has not what `lie` names: the ids it is told
    /// of, and the files that are brought to it.
    async fn told(
        &self,
        served: &[ServedCertificate],
        lie: Answer,
    ) -> (BTreeSet<CertificateId>, Vec<(CertificateId, String)>) {
        let (named, brought) = (Mutex::new(BTreeSet::new()), Mutex::new(Vec::new()));
        let ask = |request| {
            let answer = match request {
                Request::MissingCertificates { certificates } => {
                    named.lock().unwrap().extend(certificates.into_iter().map(|one| one.id));
                    lie.clone()
                }
                Request::PutCertificates { certificates } => {
                    brought.lock().unwrap().extend(certificates.into_iter().map(|one| (one.id, one.pem.0)));
                    Answer::Done { changed: true }
                }
                other => panic!("{other:?}"),
            };
            async move { Ok::<_, sqlx::Error>(answer) }
        };
        self.world.controller.services.bring_certificates(served, ask).await.unwrap();
        (named.into_inner().unwrap(), brought.into_inner().unwrap())
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_that_asks_for_certificates_of_others_gets_none(db: PgPool) {
    let two = Two::new(db).await;
    let (mine, theirs) = (two.served(0).await, two.served(1).await);
    let [own] = mine.as_slice() else { panic!("{mine:?}") };
    let [others] = theirs.as_slice() else { panic!("{theirs:?}") };
    assert_ne!(own.id, others.id);

    let (named, brought) = two.told(&mine, Answer::MissingCertificates(vec![own.id])).await;
    assert_eq!(named, BTreeSet::from([own.id]), "it is told of its own only");
    assert!(brought.len() == 1 && brought[0].1.contains("PRIVATE KEY"), "what it serves comes with its key");

    // Of all that there are it names those of others, many times, and some that are nobody's.
    let mut lie = vec![others.id; 500];
    lie.extend((0..500).map(|_| CertificateId(Uuid::now_v7())));
    let (_, brought) = two.told(&mine, Answer::MissingCertificates(lie.clone())).await;
    assert!(brought.is_empty(), "nothing comes of it");
    lie.push(own.id);
    let (_, brought) = two.told(&mine, Answer::MissingCertificates(lie)).await;
    assert_eq!(brought.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [own.id]);

    // What is no answer to what it was asked brings nothing, and stops nothing.
    let (_, brought) = two.told(&mine, Answer::Done { changed: true }).await;
    assert!(brought.is_empty());
    let (named, _) = two.told(&[], Answer::MissingCertificates(vec![others.id])).await;
    assert!(named.is_empty(), "who serves nothing is not asked at all");
}

/// A key of the past or of the future is not to be had either: what counts is what the name serves now, and where.
#[sqlx::test(migrations = "../../migrations")]
async fn a_certificate_that_was_replaced_or_moved_away_is_not_to_be_had_again(db: PgPool) {
    let two = Two::new(db).await;
    let before = two.served(0).await;
    let renewed = two.sign(0, "mine.example.org").await;
    let mine = two.served(0).await;
    assert_eq!(mine.iter().map(|one| one.id).collect::<Vec<_>>(), [renewed]);
    let (_, brought) = two.told(&mine, Answer::MissingCertificates(vec![before[0].id])).await;
    assert!(brought.is_empty(), "the one before is kept, and goes nowhere");

    // The name goes to the other node, and gets a new one there.
    two.world.run("update guests set node_id = (select id from nodes where address = '192.0.2.2')").await;
    let moved = two.sign(0, "mine.example.org").await;
    assert!(two.served(0).await.is_empty());
    assert!(two.served(1).await.iter().any(|one| one.id == moved));
    let (named, brought) = two.told(&two.served(0).await, Answer::MissingCertificates(vec![renewed, moved])).await;
    assert!(named.is_empty() && brought.is_empty());
}
