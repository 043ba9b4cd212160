/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process can be reached: its machine, the addresses of that machine, and the port at which
 * it listens. Packed into a fixed number of bytes for the other processes.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define LH_ADDRESSES_MAX 16
#define LH_MACHINE_BYTES 32 /* SHA-256 */
#define LH_KEY_BYTES 32

/* An address of an interface that is up. */
typedef struct {
    bool v6;
    unsigned char bytes[16]; /* network byte order; IPv4 uses the first four */
    uint32_t prefix_bits;    /* network prefix length */
} LhAddress;

typedef struct {
    /* Hash of boot id, network namespace and host name: equal in processes that can reach each
     * other over loopback. */
    unsigned char machine[LH_MACHINE_BYTES];
    unsigned char
        key[LH_KEY_BYTES]; /* knowing the first process's key proves membership of the run */
    uint16_t port;
    uint32_t count;
    LhAddress addresses[LH_ADDRESSES_MAX];
    bool chosen; /* the user chose the interfaces; not sent to others */
} LhEndpoint;

/*
 * Describes this machine, with a random key and no port. Skips loopback and link-local addresses.
 * If LONGHAUL_SOCKET_IFNAME is set (comma-separated prefixes of interface names), takes only
 * matching interfaces. False with @error: LH_ERROR_USAGE if no interface matches, else
 * LH_ERROR_RUNTIME.
 */
bool lh_endpoint_here(LhEndpoint *here, GError **error);

/* Appends the endpoint to @bytes, always the same number of bytes. */
void lh_endpoint_pack(const LhEndpoint *of, GByteArray *bytes);
gsize lh_endpoint_packed_bytes(void);
/* Decodes lh_endpoint_packed_bytes() bytes; false if they are no endpoint. */
bool lh_endpoint_unpack(const unsigned char *bytes, LhEndpoint *into);

/*
 * Appends to @order (of LhAddress) the addresses at which @here should try to reach @there, best
 * first. On the same machine: loopback. Otherwise: addresses in networks that @here is also on,
 * then the others. Addresses that both machines have (bridges of containers) do not connect them
 * and are skipped.
 */
void lh_endpoint_order(const LhEndpoint *here, const LhEndpoint *there, GArray *order);

/* 127.0.0.1. */
extern const LhAddress lh_address_loopback;

/* Fills the socket address; returns its length. */
socklen_t lh_address_socket(const LhAddress *address, uint16_t port,
                            struct sockaddr_storage *socket_address);
/* Converts from a socket address, with a prefix of 0 bits; false if it is not IP. */
bool lh_address_of(const struct sockaddr_storage *socket_address, LhAddress *address);
/* "10.0.0.2". Caller frees. */
char *lh_address_text(const LhAddress *address);
