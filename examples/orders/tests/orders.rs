//! The story of the README.

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use orders::{Customers, Orders};
    use tidegate_bus::{Bus, InProcessBus};
    use tidegate_hydration::EntityKey;

    /// HYD-11, HYD-16, HYD-17: asked, announced, not found, come into being, and a lost
    /// announcement that heals itself.
    #[tokio::test(start_paused = true)]
    async fn a_missed_event_heals_itself() {
        let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
        let customers = Customers::start(Arc::clone(&bus)).await.unwrap();
        let of = |id| EntityKey::new("acme", "customer", id).unwrap();
        customers.save(&of("c-7"), "Ada", "London");
        let orders = Orders::start(bus).await.unwrap();
        assert_eq!(orders.label(&of("c-7")).await.unwrap(), "Ada, London");
        customers.save_and_announce(&of("c-7"), "Ada", "Paris").await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(orders.label(&of("c-7")).await.unwrap(), "Ada, Paris");
        assert_eq!(orders.label(&of("c-9")).await.unwrap(), "unknown customer c-9");
        customers.save_and_announce(&of("c-9"), "Eve", "Oslo").await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(orders.label(&of("c-9")).await.unwrap(), "Eve, Oslo");
        customers.save(&of("c-8"), "Bob", "Rome");
        assert_eq!(orders.label(&of("c-8")).await.unwrap(), "Bob, Rome");
        assert_eq!(customers.questions(), 3);
    }
}
