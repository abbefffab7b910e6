//! Where certificates of names come from, and how far they are.

use crate::text::word_enum;

word_enum!(
    /// Who signed a certificate.
    CertificateSource, "source of a certificate", {
        /// The authority of Corpus itself.
        Internal = "internal",
        /// A directory that is asked by ACME.
        Acme = "acme",
        /// Somebody brought it, with its key.
        Uploaded = "uploaded",
    }
);

word_enum!(
    /// How far the certificate of a name is.
    CertificateState, "state of a certificate", {
        /// There is none, and none is asked for.
        None = "none",
        /// It is to be got.
        Wanted = "wanted",
        /// It is being got.
        Issuing = "issuing",
        /// The node serves it.
        Served = "served",
        /// The last try to get one failed; another follows by itself. The one before is served until it ends.
        Failed = "failed",
    }
);
