//! Runs both services in one process and tells what happens.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use orders::{Customers, Orders};
use tidegate_bus::{Bus, InProcessBus};
use tidegate_hydration::EntityKey;

/// Longer than a message takes within one process.
const A_MOMENT: Duration = Duration::from_millis(50);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let customers = Customers::start(Arc::clone(&bus)).await?;
    let [ada, eve, bob] = [
        EntityKey::new("acme", "customer", "c-7")?,
        EntityKey::new("acme", "customer", "c-9")?,
        EntityKey::new("acme", "customer", "c-8")?,
    ];
    customers.save(&ada, "Ada", "London");
    let orders = Orders::start(bus).await?;

    println!("label for order 1: {}", orders.label(&ada).await?);
    println!("  a customer that orders had never heard of: it asked, and customers answered");
    customers.save_and_announce(&ada, "Ada", "Paris").await;
    tokio::time::sleep(A_MOMENT).await;
    println!("label for order 2: {}", orders.label(&ada).await?);
    println!("  Ada moved, customers announced it, and orders did not ask");
    println!("label for order 3: {}", orders.label(&eve).await?);
    println!("  customers said that there is none; orders remembers it for five minutes");
    customers.save_and_announce(&eve, "Eve", "Oslo").await;
    tokio::time::sleep(A_MOMENT).await;
    println!("label for order 4: {}", orders.label(&eve).await?);
    println!("  c-9 came into being, and its announcement cleared that");
    customers.save(&bob, "Bob", "Rome");
    println!("label for order 5: {}", orders.label(&bob).await?);
    println!("  the announcement of Bob was lost; the first order that needed him healed it");
    println!("5 orders, {} questions", customers.questions());
    Ok(())
}
