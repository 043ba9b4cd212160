/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process can be reached: which machine it is on, what addresses that has, and the port at
 * which it listens. Told to the other processes as bytes of a fixed number.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define LH_ADDRESSES_MAX 16
#define LH_MACHINE_BYTES 32 /* SHA-256 */
#define LH_KEY_BYTES 32

/* Of an interface that is up. */
typedef struct {
    bool v6;
    unsigned char bytes[16]; /* in the order of the network; the first four of an IPv4 address */
    uint32_t prefix_bits;    /* the first ones, which name its network */
} LhAddress;

typedef struct {
    /* The same in processes that reach each other without a network: of boot, network namespace and
     * host name. */
    unsigned char machine[LH_MACHINE_BYTES];
    unsigned char key[LH_KEY_BYTES]; /* who knows the first process's belongs to the run */
    uint16_t port;
    uint32_t count;
    LhAddress addresses[LH_ADDRESSES_MAX];
    bool chosen; /* addresses are those of interfaces that somebody has named; not told to others */
} LhEndpoint;

/*
 * What this machine is and has, with a random key and no port. Loopback and link-local addresses
 * are left out; of the others those of the interfaces whose names begin with a word of
 * LONGHAUL_SOCKET_IFNAME, words separated by commas, if that is in the environment. False with
 * @error: LH_ERROR_USAGE if no interface is named so, else LH_ERROR_RUNTIME.
 */
bool lh_endpoint_here(LhEndpoint *here, GError **error);

/* Appends them to @bytes, as many bytes whatever they are. */
void lh_endpoint_pack(const LhEndpoint *of, GByteArray *bytes);
gsize lh_endpoint_packed_bytes(void);
/* False if the bytes, that many, are no whereabouts. */
bool lh_endpoint_unpack(const unsigned char *bytes, LhEndpoint *into);

/*
 * Appends to @order, of LhAddress, where @here should try to reach @there, best first: on the same
 * machine over loopback; else by addresses of networks that @here is on, too, then by the others.
 * Addresses that both have (bridges of containers) lead nowhere and are left out.
 */
void lh_endpoint_order(const LhEndpoint *here, const LhEndpoint *there, GArray *order);

/* Of every machine itself. */
extern const LhAddress lh_address_loopback;

/* The address of a socket; returns its length. */
socklen_t lh_address_socket(const LhAddress *address, uint16_t port,
                            struct sockaddr_storage *socket_address);
/* That of a socket, with a prefix of 0 bits; false: it is none of IP. */
bool lh_address_of(const struct sockaddr_storage *socket_address, LhAddress *address);
/* "10.0.0.2". Caller frees. */
char *lh_address_text(const LhAddress *address);
