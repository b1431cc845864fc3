//! The contracts of the SQL ports, stamped on PostgreSQL.

mod support;

use support::Private;

kefu_testkit::store_contract!(Private);
