//! Shuffle sharding: every flow gets a small hand of queues out of many, so that a heavy flow fills its own
//! hand and hardly ever another flow's whole hand.

/// A hand needs at most this many bits of hash; the last card of one that needs all 64 would be uneven.
const MAX_HASH_BITS: f64 = 60.0;
const MAX_DECK: u32 = 1 << 26;
/// The largest hand that fits the bits: fifteen cards of a deck of fifteen.
pub const MAX_HAND: usize = 15;

/// Deals hands of cards `0..deck`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dealer {
    deck: u32,
    hand: u32,
}

/// Distinct cards in the order they were dealt.
#[derive(Debug, Clone, Copy)]
pub struct Hand {
    cards: [u32; MAX_HAND],
    size: usize,
}

impl Dealer {
    /// Says why the sizes do not go together.
    pub fn new(deck: u32, hand: u32) -> Result<Dealer, String> {
        if deck == 0 || hand == 0 {
            return Err(format!("deckSize {deck} or handSize {hand} is not positive"));
        }
        if hand > deck {
            return Err(format!("handSize {hand} is greater than deckSize {deck}"));
        }
        if deck > MAX_DECK {
            return Err(format!("deckSize {deck} is impractically large"));
        }
        if (f64::from(deck).log2() * f64::from(hand)).ceil() > MAX_HASH_BITS || hand as usize > MAX_HAND {
            return Err(format!(
                "required entropy bits of deckSize {deck} and handSize {hand} is greater than {MAX_HASH_BITS}"
            ));
        }
        Ok(Dealer { deck, hand })
    }

    /// The hand of a flow with this hash. The digits of the hash, in the mixed base deck, deck-1, deck-2 …, say
    /// which of the cards that are left is taken.
    pub fn deal(&self, mut hash: u64) -> Hand {
        let mut hand = Hand { cards: [0; MAX_HAND], size: 0 };
        let mut taken = [0; MAX_HAND];
        for dealt in 0..self.hand as usize {
            let left = u64::from(self.deck) - dealt as u64;
            let mut card = (hash % left) as u32;
            hash /= left;
            // From "the n-th of those left" to the card itself: step over the taken ones, in ascending order.
            for other in &taken[..dealt] {
                if card >= *other {
                    card += 1;
                }
            }
            hand.cards[dealt] = card;
            let place = taken[..dealt].partition_point(|other| *other < card);
            taken.copy_within(place..dealt, place + 1);
            taken[place] = card;
        }
        hand.size = self.hand as usize;
        hand
    }
}

impl Hand {
    pub fn cards(&self) -> &[u32] {
        &self.cards[..self.size]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn sizes_must_go_together() {
        for (deck, hand, good) in
            [(128, 6, true), (0, 1, false), (1, 0, false), (1, 1, true), (3, 4, false), (1 << 27, 1, false)]
        {
            assert_eq!(Dealer::new(deck, hand).is_ok(), good, "{deck} {hand}");
        }
        // 9 bits a card: six fit into 60, seven do not.
        assert!(Dealer::new(512, 6).is_ok());
        assert!(Dealer::new(512, 7).is_err());
    }

    #[test]
    fn every_hand_of_a_small_deck_is_dealt_equally_often() {
        let dealer = Dealer::new(5, 3).unwrap();
        let mut counts = std::collections::HashMap::new();
        for hash in 0..60 * 7 {
            let hand = dealer.deal(hash);
            assert_eq!(hand.cards().iter().collect::<HashSet<_>>().len(), 3, "{hand:?}");
            assert!(hand.cards().iter().all(|card| *card < 5));
            *counts.entry(hand.cards().to_vec()).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 60);
        assert!(counts.values().all(|n| *n == 7));
    }
}
