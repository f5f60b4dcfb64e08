//! How plugins travel and who vouches for them: registries, signatures and bundles, through the real command and
//! real servers, with Debian's registry on the other side and `skopeo` as another client.

mod bundles;
mod origin;
mod registry;
mod round_trip;
mod signing;
mod support;
