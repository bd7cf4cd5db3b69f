//! The suites that every bus must pass, on the bus within one process.

use std::sync::Arc;

use tidegate_bus::{Bus, BusFuture, InProcessBus};
use tidegate_contract::bus::BusBackend;

struct InProcessBackend(InProcessBus);

impl BusBackend for InProcessBackend {
    fn connect(&self) -> BusFuture<'_, Arc<dyn Bus>> {
        Box::pin(async { Ok(Arc::new(self.0.clone()) as _) })
    }
}

tidegate_contract::bus_suites!(InProcessBackend(InProcessBus::new()));
