//! Concurrent deployments into one guild.

use tidegate_discord::deploy::Error;
use tidegate_sim::DiscordSimOptions;

use crate::world::{Node, SMALL, ms, sim, store};

/// OPS-19: of two concurrent runs one waits for the other, and then has nothing to do.
#[tokio::test]
async fn ops_19_one_waits_for_the_other() {
    let sim = sim(DiscordSimOptions { latency: ms(5), ..DiscordSimOptions::default() }).await;
    let node = Node::open(&sim.addr().to_string(), store("memory:").await).await;
    let (one, other) = tokio::join!(node.apply(SMALL), node.apply(SMALL));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.writes() + other.writes(), 14, "{one:?} {other:?}");
    assert_eq!((sim.stats().all.writes, sim.stats().all.duplicates), (14, 0));
}

/// OPS-19: the error of a run that may not wait names the running deployment.
#[tokio::test]
async fn ops_19_who_may_not_wait_is_refused() {
    let sim = sim(DiscordSimOptions { latency: ms(20), ..DiscordSimOptions::default() }).await;
    let node = Node::open(&sim.addr().to_string(), store("memory:").await).await;
    let impatient = node.deployer.clone().with_patience(ms(0));
    let wanted = crate::world::wanted(SMALL);
    let second = async {
        while sim.stats().all.writes == 0 {
            tokio::time::sleep(ms(2)).await;
        }
        impatient.apply(&wanted, &tidegate_discord::deploy::NoopListener).await.unwrap_err()
    };
    let (first, refused) = tokio::join!(node.apply(SMALL), second);
    let id = first.unwrap().deployment;
    assert!(matches!(&refused, Error::Busy { deployment: Some(known), .. } if *known == id), "{refused}");
    assert_eq!((sim.stats().all.writes, sim.stats().all.duplicates), (14, 0));
}
