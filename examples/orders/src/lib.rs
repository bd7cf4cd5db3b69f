//! An example: two services that share a bus and nothing else.

pub mod customers;
pub mod orders;

pub use customers::Customers;
pub use orders::Orders;
