//! The sizes of guests, and where there is room for them.

use corpus_api::sizes::{ImageOffer, ListSizes, SizeLine, Sizes};
use corpus_domain::{Backing, Limits, Room, SizeProfile};
use corpus_gate::{Handle, Permit, Result};

use crate::Controller;
use crate::store::{images, room};

impl Handle<ListSizes> for Controller {
    async fn handle(&self, permit: Permit<ListSizes>) -> Result<Sizes> {
        // As a guest is made with nothing else chosen.
        let usual = |size: &SizeProfile| Room::of_guest(size.limits(), Backing::Overlayfs, *size);
        let needed: Vec<Room> = SizeProfile::ALL.iter().map(usual).collect();
        let mut conn = permit.connection().await?;
        let rooms = room::with_room(&mut conn, &needed).await?;
        let makings = room::makings(&mut conn).await?;
        let items = SizeProfile::ALL.iter().zip(rooms).map(|(size, room)| {
            let Limits { memory, cpu, .. } = size.limits();
            SizeLine { size: *size, storage: size.storage(), memory, cpu, room }
        });
        let made = images::made(&mut conn).await?;
        let images = &self.services.settings.images;
        let offers = images.iter().filter_map(|name| {
            let made_at = made.get(name).copied();
            // Nodes make the usual one themselves where the controller has no archive of it.
            (made_at.is_some() || *name == images.usual()).then(|| ImageOffer { name: name.clone(), made_at })
        });
        Ok(Sizes { items: items.collect(), makings, images: offers.collect() })
    }
}
