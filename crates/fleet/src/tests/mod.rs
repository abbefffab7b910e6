//! Against a real OpenSSH server, started here on a loopback port in a mount namespace of its
//! own: with its own accounts, homes and `/var/lib`, so nothing of this machine is touched.
//! That takes root. The agent is a small shell script that speaks the real protocol and can
//! misbehave on request. `figures` and `lab` can be run with the real one.

mod calls;
mod connecting;
mod figures;
mod gateways;
mod lab;
mod linking;
mod logins;
mod proxy;
mod supervising;
mod uploads;
