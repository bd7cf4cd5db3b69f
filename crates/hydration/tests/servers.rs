//! Consumers and sources on buses of real servers, each with a connection of its own; the servers
//! are killed and restarted under load.

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use bytes::Bytes;
    use tidegate_bus::{Bus, BusFuture, BusSubscription, Delivery, Subject, SubjectFilter};
    use tidegate_bus_nats::NatsBus;
    use tidegate_fixture::nats::NatsServer;
    use tidegate_fixture::postgres::PostgresServer;
    use tidegate_fixture::redis::RedisServer;
    use tidegate_hydration::{
        AbsenceReason, EntityKey, EntityQuestion, EntitySource, FlightRules, GetOptions, Hydration,
        HydrationError, Hydrator, MemoryCopies, MissReason, SourceAnswer, SourceFuture, SourceServer,
    };
    use tidegate_store::{SharedState, Upkeep};
    use tidegate_store_postgres::PostgresStore;
    use tidegate_store_redis::{RedisBus, RedisStore};
    use tokio::time::{Instant, sleep, timeout};

    /// A server that can die.
    trait Server: Send {
        fn connect(&self) -> BusFuture<'_, Arc<dyn Bus>>;
        fn kill(&mut self);
        fn restart(&mut self);
    }

    impl Server for RedisServer {
        fn connect(&self) -> BusFuture<'_, Arc<dyn Bus>> {
            Box::pin(async { Ok(Arc::new(RedisBus::connect(&self.url()).await?) as Arc<dyn Bus>) })
        }

        fn kill(&mut self) {
            Self::kill(self);
        }

        fn restart(&mut self) {
            Self::restart(self);
        }
    }

    impl Server for NatsServer {
        fn connect(&self) -> BusFuture<'_, Arc<dyn Bus>> {
            Box::pin(async { Ok(Arc::new(NatsBus::connect(&self.url()).await?) as Arc<dyn Bus>) })
        }

        fn kill(&mut self) {
            Self::kill(self);
        }

        fn restart(&mut self) {
            Self::restart(self);
        }
    }

    /// Counts what is published.
    struct CountingBus {
        inner: Arc<dyn Bus>,
        published: Arc<AtomicUsize>,
    }

    impl Bus for CountingBus {
        fn publish<'a>(&'a self, subject: &'a Subject, payload: Bytes) -> BusFuture<'a, Delivery> {
            self.published.fetch_add(1, Ordering::SeqCst);
            self.inner.publish(subject, payload)
        }

        fn subscribe<'a>(&'a self, filter: &'a SubjectFilter) -> BusFuture<'a, BusSubscription> {
            self.inner.subscribe(filter)
        }

        fn close(&self) {
            self.inner.close();
        }
    }

    /// Every id with an even number exists.
    struct Customers;

    impl EntitySource for Customers {
        fn load<'a>(&'a self, question: &'a EntityQuestion) -> SourceFuture<'a> {
            let exists = question.key.id().parse::<u64>().is_ok_and(|number| number % 2 == 0);
            Box::pin(async move {
                Ok(if exists {
                    SourceAnswer::Found { data: serde_json::Map::new(), version: Some(1) }
                } else {
                    SourceAnswer::NotFound { reason: AbsenceReason::DeletedOrNeverExisted, version: None }
                })
            })
        }
    }

    fn key(number: usize) -> EntityKey {
        EntityKey::new("acme", "customer", &number.to_string()).unwrap()
    }

    async fn consumer(bus: Arc<dyn Bus>, published: &Arc<AtomicUsize>) -> Hydrator {
        let bus = Arc::new(CountingBus { inner: bus, published: Arc::clone(published) });
        Hydrator::builder("orders", bus, Arc::new(MemoryCopies::default())).start().await.unwrap()
    }

    fn patient() -> GetOptions {
        GetOptions::full().wait(Duration::from_secs(5))
    }

    async fn another_node_answers(server: &dyn Server) {
        let published = Arc::new(AtomicUsize::new(0));
        let hydrator = consumer(server.connect().await.unwrap(), &published).await;
        let before = Instant::now();
        let absent = hydrator.get(&key(0), &patient()).await;
        assert!(matches!(absent, Err(HydrationError::Unavailable(MissReason::SourceAbsent))), "{absent:?}");
        assert!(before.elapsed() < Duration::from_secs(2), "at once, not after the wait");
        let bus = server.connect().await.unwrap();
        let source = SourceServer::start("customers", "customer", bus, Arc::new(Customers)).await.unwrap();
        assert!(matches!(hydrator.get(&key(2), &patient()).await, Ok(Hydration::Found(_))));
        assert!(matches!(hydrator.get(&key(3), &patient()).await, Ok(Hydration::NotFound(_))));
        assert_eq!(published.load(Ordering::SeqCst), 3, "one question for each");
        source.announce(&key(3), serde_json::Map::new(), Some(1)).await.unwrap();
        let cleared = async {
            while !matches!(hydrator.get(&key(3), &patient()).await, Ok(Hydration::Found(_))) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(5), cleared).await.expect("the change arrives");
        hydrator.close().await;
    }

    async fn an_outage_leaves_no_one_waiting(mut server: impl Server) {
        let published = Arc::new(AtomicUsize::new(0));
        let hydrator = consumer(server.connect().await.unwrap(), &published).await;
        let bus = server.connect().await.unwrap();
        let _source = SourceServer::start("customers", "customer", bus, Arc::new(Customers)).await.unwrap();
        let (next, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let callers: Vec<_> = (0..20)
            .map(|_| {
                let (hydrator, next, is_over) = (hydrator.clone(), Arc::clone(&next), Arc::clone(&is_over));
                tokio::spawn(async move {
                    let mut answers = 0;
                    while !is_over.load(Ordering::SeqCst) {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        let (key, options) = (key(number), GetOptions::full());
                        let read = hydrator.get(&key, &options);
                        let outcome = timeout(Duration::from_secs(5), read).await.expect("no one hangs");
                        match outcome {
                            Ok(_) => answers += 1,
                            Err(error) => assert!(error.is_temporary(), "{error}"),
                        }
                        sleep(Duration::from_millis(10)).await;
                    }
                    answers
                })
            })
            .collect();
        sleep(Duration::from_millis(100)).await;
        server.kill();
        sleep(Duration::from_millis(300)).await;
        server.restart();
        let back = async {
            let mut number = 1_000_000;
            while hydrator.get(&key(number), &GetOptions::full()).await.is_err() {
                number += 1;
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(20), back).await.expect("it works again");
        is_over.store(true, Ordering::SeqCst);
        let mut answers = 0;
        for caller in callers {
            answers += timeout(Duration::from_secs(10), caller).await.expect("no one hangs").unwrap();
        }
        assert!(answers > 20, "{answers}");
        // Two for each entity, and each that was open when the bus came back once more.
        let most = 2 * (next.load(Ordering::SeqCst) + 1_100) + 1_000;
        assert!(published.load(Ordering::SeqCst) <= most, "{published:?} questions, {most} expected");
        hydrator.close().await;
    }

    /// HYD-12, HYD-23: a module on one node is hydrated by a source on another, over Redis.
    #[tokio::test]
    async fn hyd_12_hyd_23_a_node_answers_another_on_redis() {
        another_node_answers(&RedisServer::start()).await;
    }

    /// HYD-12, HYD-23: the same over NATS.
    #[tokio::test]
    async fn hyd_12_hyd_23_a_node_answers_another_on_nats() {
        another_node_answers(&NatsServer::start()).await;
    }

    /// HYD-24: Redis is killed and restarted under load: every caller has an answer or a temporary
    /// error, no one hangs, and there is no storm.
    #[tokio::test]
    async fn hyd_24_an_outage_of_redis_leaves_no_one_waiting() {
        an_outage_leaves_no_one_waiting(RedisServer::start()).await;
    }

    /// HYD-24: the same with NATS.
    #[tokio::test]
    async fn hyd_24_an_outage_of_nats_leaves_no_one_waiting() {
        an_outage_leaves_no_one_waiting(NatsServer::start()).await;
    }

    /// A node on its own connections: its bus, and the store that it shares.
    async fn node(bus: Arc<dyn Bus>, store: Arc<dyn SharedState>, published: &Arc<AtomicUsize>) -> Hydrator {
        let bus = Arc::new(CountingBus { inner: bus, published: Arc::clone(published) });
        // Slow machines have slow stores; the window is shorter than this.
        let rules = FlightRules { retry_backoff: Duration::from_secs(4), ..FlightRules::default() };
        let builder = Hydrator::builder("orders", bus, Arc::new(MemoryCopies::default())).rules(rules);
        builder.shared(store).start().await.unwrap()
    }

    async fn two_nodes_ask_once(server: &dyn Server, stores: [Arc<dyn SharedState>; 3]) {
        let published = Arc::new(AtomicUsize::new(0));
        let bus = server.connect().await.unwrap();
        let _source = SourceServer::start("customers", "customer", bus, Arc::new(Customers)).await.unwrap();
        let [first, second, third] = stores;
        let nodes = [
            node(server.connect().await.unwrap(), first, &published).await,
            node(server.connect().await.unwrap(), second, &published).await,
        ];
        for (number, is_found) in [(2, true), (3, false)] {
            published.store(0, Ordering::SeqCst);
            let callers = (0..200).map(|caller| {
                let node = nodes[caller % 2].clone();
                tokio::spawn(async move { node.get(&key(number), &patient()).await })
            });
            for caller in callers.collect::<Vec<_>>() {
                let outcome = caller.await.unwrap();
                assert_eq!(matches!(outcome, Ok(Hydration::Found(_))), is_found, "{outcome:?}");
            }
            assert_eq!(published.load(Ordering::SeqCst), 1, "one question of two nodes");
        }
        let late = node(server.connect().await.unwrap(), third, &published).await;
        let outcome = late.get(&key(3), &patient()).await;
        assert!(matches!(outcome, Ok(Hydration::NotFound(_))), "{outcome:?}");
        assert_eq!(published.load(Ordering::SeqCst), 1, "the store knew it");
    }

    /// HYD-10, HYD-19: two nodes, one hot id, a shared store: one question; what was not found is
    /// known to a node that starts later. On Redis.
    #[tokio::test]
    async fn hyd_10_hyd_19_two_nodes_ask_once_on_redis() {
        let server = RedisServer::start();
        let open = async || Arc::new(RedisStore::open(&server.url()).await.unwrap()) as Arc<dyn SharedState>;
        let stores = [open().await, open().await, open().await];
        two_nodes_ask_once(&server, stores).await;
    }

    /// HYD-10, HYD-19: the same with the store on PostgreSQL and the bus on NATS.
    #[tokio::test]
    async fn hyd_10_hyd_19_two_nodes_ask_once_on_postgres() {
        let (bus, server) = (NatsServer::start(), PostgresServer::start());
        let url = server.url();
        let first = PostgresStore::connect(&url).await.unwrap();
        first.migrate().await.unwrap();
        let open = async || Arc::new(PostgresStore::connect(&url).await.unwrap()) as Arc<dyn SharedState>;
        let stores = [Arc::new(first) as Arc<dyn SharedState>, open().await, open().await];
        two_nodes_ask_once(&bus, stores).await;
    }
}
