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
    use tidegate_fixture::redis::RedisServer;
    use tidegate_hydration::{
        AbsenceReason, EntityKey, EntityQuestion, EntitySource, GetOptions, Hydration, HydrationError,
        Hydrator, MemoryCopies, MissReason, SourceAnswer, SourceFuture, SourceServer,
    };
    use tidegate_store_redis::RedisBus;
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
}
