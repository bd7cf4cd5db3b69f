//! Runs both services in one process and tells what happens; or, with the URL of a NATS server,
//! only the one that needs customers, which prints the label of every id on its standard input.

use std::error::Error;
use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use orders::{Customers, Orders};
use tidegate_bus::{Bus, InProcessBus};
use tidegate_bus_nats::NatsBus;
use tidegate_hydration::EntityKey;

/// Longer than a message takes within one process.
const A_MOMENT: Duration = Duration::from_millis(50);
const TENANT: &str = "acme";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        Some(url) => print_labels(&url).await,
        None => run_both().await,
    }
}

async fn print_labels(url: &str) -> Result<(), Box<dyn Error>> {
    let orders = Orders::start(Arc::new(NatsBus::connect(url).await?)).await?;
    for line in std::io::stdin().lock().lines() {
        let customer = match EntityKey::new(TENANT, "customer", line?.trim()) {
            Ok(customer) => customer,
            Err(error) => {
                println!("no id: {error}");
                continue;
            }
        };
        match orders.label(&customer).await {
            Ok(label) => println!("label: {label}"),
            Err(error) => println!("no label: {error}"),
        }
    }
    Ok(())
}

async fn run_both() -> Result<(), Box<dyn Error>> {
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let customers = Customers::start(Arc::clone(&bus)).await?;
    let [ada, eve, bob] = [
        EntityKey::new(TENANT, "customer", "c-7")?,
        EntityKey::new(TENANT, "customer", "c-9")?,
        EntityKey::new(TENANT, "customer", "c-8")?,
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
