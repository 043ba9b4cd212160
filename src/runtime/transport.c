/* The list of transports. */
#include "runtime/transport.h"

const char *const lh_transport_names[] = { "cpu", "mpi", NULL };

const LhTransport *const lh_transports[] = { &lh_transport_threads, &lh_transport_mpi, NULL };

G_STATIC_ASSERT(G_N_ELEMENTS(lh_transports) == G_N_ELEMENTS(lh_transport_names));
