//! Attacks, one test each: by guests, by uploads, by a tenant on its neighbours, and on what is reachable from inside.
//!
//! Every attack must end in the class that is expected of it, while another tenant's calls on a connection of their own
//! all succeed, and the server must answer afterwards. How long an attack takes to contain and what it does to the
//! bystander's calls is measured and shown in a table at the end of the suite, and never judged: machines differ.
//! What is judged about shares is their structure, such as whose turn is next.

mod egress;
mod limits;
mod neighbours;
mod rebinding;
mod scene;
mod uploads;
