//! The registry of clients and of substitute clients.

use nxla_pjrt::Client;

use crate::sync::Shared;

/// The registered clients in the order of registration; they live as long as the process.
static CLIENTS: Shared<Vec<Client>> = Shared::new(Vec::new());

/// Pairs of substitute and original clients. A program uses a substitute if all threads of the
/// original client are occupied.
static SUBSTITUTES: Shared<Vec<(Client, Client)>> = Shared::new(Vec::new());

/// Makes a client substitute another: its devices equal the other's devices.
pub(crate) fn substitute(client: &Client, original: &Client) {
    let mut all = SUBSTITUTES.lock();
    if !all.iter().any(|(known, _)| known == client) {
        all.push((client.clone(), original.clone()));
    }
}

/// Returns the original client of a substitute, or the client itself.
pub(crate) fn original(client: &Client) -> Client {
    let all = SUBSTITUTES.lock();
    let found = all.iter().find(|(known, _)| known == client);
    found.map_or(client, |(_, original)| original).clone()
}

/// The position of a client among the clients of its platform. The call registers the client, so
/// that devices are numbered in the order of their clients.
pub(crate) fn ordinal(client: &Client) -> usize {
    let mut known = CLIENTS.lock();
    if !known.contains(client) {
        known.push(client.clone());
    }
    let same = known.iter().filter(|other| other.platform_name() == client.platform_name());
    same.take_while(|other| *other != client).count()
}

/// The clients in the order of their creation.
pub(crate) fn known_clients() -> Vec<Client> {
    CLIENTS.lock().clone()
}
