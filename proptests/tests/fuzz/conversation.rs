//! Whole conversations with a gateway over a world in memory, and with one that hangs up.

use kefu_proptests::fuzz::handler::{self, Place};
use kefu_proptests::fuzz::{fuzz, fuzz_broken};
use kefu_proptests::{Violation, caught};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::house::{House, hanging_up};

fn converse(place: &Place, data: &[u8]) -> Result<(), Violation> {
    block_in_place(|| Handle::current().block_on(handler::target(place, data)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_conversation_ends_well_and_the_next_one_is_served() -> Result<(), Violation> {
    let house = House::open().await;
    fuzz(&handler::SHAPE, 1_000, |data| converse(&house.place, data))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_up_without_a_close_code_is_caught() -> Result<(), Violation> {
    let house = House::open().await;
    let (address, _server) = hanging_up(house.place.address).await;
    let place = Place { address, ..house.place.clone() };
    let found = fuzz_broken(&handler::SHAPE, 100, |data| converse(&place, data));
    caught(found, "no close code")
}
