//! The node agent between the real plugin and a real cluster.

mod crashes;
mod doctor;
mod inventory;
mod kill_points;
mod kills;
mod outages;
mod status;
mod tokens;
mod users;
