//! The same story in two processes: orders in Rust, customers in Python, on NATS.

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
    use std::sync::Arc;
    use std::time::Duration;

    use orders::Orders;
    use tidegate_bus_nats::NatsBus;
    use tidegate_fixture::nats::NatsServer;
    use tidegate_hydration::{EntityKey, HydrationError, MissReason};
    use tokio::time::{sleep, timeout};

    /// The service in Python. It ends with the test.
    struct Customers {
        child: Child,
        input: ChildStdin,
        output: BufReader<ChildStdout>,
    }

    impl Customers {
        fn start(url: &str) -> Self {
            let program = concat!(env!("CARGO_MANIFEST_DIR"), "/customers.py");
            let mut command = Command::new("python3");
            command.args(["-B", program, url]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            let mut customers = Self { child, input, output: BufReader::new(output) };
            customers.expect("customers answers");
            customers
        }

        fn expect(&mut self, expected: &str) {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            assert_eq!(line.trim_end(), expected);
        }

        fn save(&mut self, line: &str, id: &str) {
            writeln!(self.input, "{line}").unwrap();
            self.expect(&format!("saved {id}"));
        }
    }

    impl Drop for Customers {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    fn key(id: &str) -> EntityKey {
        EntityKey::new("acme", "customer", id).unwrap()
    }

    /// Waits until the label of an order is this one.
    async fn expect_label(orders: &Orders, id: &str, expected: &str) {
        let reading = async {
            while !matches!(orders.label(&key(id)).await, Ok(label) if label == expected) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(20), reading).await.expect(expected);
    }

    /// HYD-12, HYD-11, HYD-16, HYD-17, HYD-23: asked, announced, not found, come into being, a lost
    /// announcement that heals itself; and a service that is gone is noticed at once.
    #[tokio::test]
    async fn hyd_12_a_service_in_python_answers_on_nats() {
        let server = NatsServer::start();
        let mut customers = Customers::start(&server.url());
        let bus = Arc::new(NatsBus::connect(&server.url()).await.unwrap());
        let orders = Orders::start(bus).await.unwrap();
        expect_label(&orders, "c-7", "Ada, London").await;
        for line in ["", "c-7 Ada", "quietly"] {
            writeln!(customers.input, "{line}").unwrap();
            customers.expect("a customer is: ID NAME CITY");
        }
        customers.save("c-7 Ada Paris", "c-7");
        expect_label(&orders, "c-7", "Ada, Paris").await;
        expect_label(&orders, "c-9", "unknown customer c-9").await;
        customers.save("c-9 Eve Oslo", "c-9");
        expect_label(&orders, "c-9", "Eve, Oslo").await;
        customers.save("quietly c-8 Bob Rome", "c-8");
        expect_label(&orders, "c-8", "Bob, Rome").await;
        drop(customers);
        let noticed = async {
            let mut number = 0;
            loop {
                number += 1;
                let gone = orders.label(&key(&format!("new-{number}"))).await;
                if matches!(gone, Err(HydrationError::Unavailable(MissReason::SourceAbsent))) {
                    break;
                }
            }
        };
        timeout(Duration::from_secs(20), noticed).await.expect("it is noticed");
        assert_eq!(orders.label(&key("c-7")).await.unwrap(), "Ada, Paris", "the copy stays");
    }
}
