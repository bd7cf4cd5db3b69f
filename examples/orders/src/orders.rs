//! The service that needs customers and does not own them.

use std::sync::Arc;

use serde_json::Value;
use tidegate_bus::Bus;
use tidegate_hydration::{
    EntityKey, GetOptions, HydratedEntity, Hydration, HydrationError, Hydrator, MemoryCopies,
};

/// The service.
pub struct Orders {
    customers: Hydrator,
}

impl Orders {
    /// Starts the service on a bus.
    ///
    /// # Errors
    /// When the bus cannot be subscribed to.
    pub async fn start(bus: Arc<dyn Bus>) -> Result<Self, HydrationError> {
        let copies = Arc::new(MemoryCopies::default());
        let builder = Hydrator::builder("orders", bus, copies).only("customer").owns("order");
        Ok(Self { customers: builder.start().await? })
    }

    /// Prints the label of an order.
    ///
    /// # Errors
    /// When customers do not answer in time; the caller may try again.
    pub async fn label(&self, customer: &EntityKey) -> Result<String, HydrationError> {
        Ok(match self.customers.get(customer, &GetOptions::full()).await? {
            Hydration::Found(found) => format!("{}, {}", text(&found, "name"), text(&found, "city")),
            _ => format!("unknown customer {}", customer.id()),
        })
    }
}

fn text<'a>(customer: &'a HydratedEntity, field: &str) -> &'a str {
    customer.field(field).and_then(Value::as_str).unwrap_or("?")
}
