/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/endpoint.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define V4_BYTES 4
#define V6_BYTES 16
#define BITS 8
#define ADDRESS_BYTES (2 + V6_BYTES) /* packed: family, prefix length, address */
#define PACKED_BYTES                                                                               \
    (LH_MACHINE_BYTES + LH_KEY_BYTES + 2 + 1 + LH_ADDRESSES_MAX * (gsize)ADDRESS_BYTES)

const LhAddress lh_address_loopback = { .bytes = { 127, 0, 0, 1 }, .prefix_bits = BITS };

static gsize
address_length(const LhAddress *a)
{
    return a->v6 ? V6_BYTES : V4_BYTES;
}

static bool
same_address(const LhAddress *a, const LhAddress *b)
{
    return a->v6 == b->v6 && memcmp(a->bytes, b->bytes, address_length(a)) == 0;
}

/* ---- this machine ---- */

static void
identify_machine(LhEndpoint *here)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autofree char *boot = NULL;
    gsize length = LH_MACHINE_BYTES;
    struct stat network;

    if (g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL))
        g_checksum_update(sum, (const guchar *)boot, -1);
    if (stat("/proc/self/ns/net", &network) == 0)
        g_checksum_update(sum, (const guchar *)&network.st_ino, sizeof(network.st_ino));
    g_checksum_update(sum, (const guchar *)g_get_host_name(), -1);
    g_checksum_get_digest(sum, here->machine, &length);
}

static uint32_t
bits_of(const unsigned char *mask, gsize bytes)
{
    uint32_t bits = 0;

    while (bits < bytes * BITS && (mask[bits / BITS] >> (BITS - 1 - bits % BITS) & 1) != 0)
        bits++;
    return bits;
}

/* False if the address cannot be reached from elsewhere. */
static bool
read_address(const struct ifaddrs *interface, LhAddress *a)
{
    const struct sockaddr *address = interface->ifa_addr, *mask = interface->ifa_netmask;

    *a = (LhAddress){ .v6 = false };
    if (address == NULL || mask == NULL || (interface->ifa_flags & IFF_UP) == 0 ||
        (interface->ifa_flags & IFF_LOOPBACK) != 0)
        return false;
    if (address->sa_family == AF_INET) {
        memcpy(a->bytes, &((const struct sockaddr_in *)(const void *)address)->sin_addr, V4_BYTES);
        a->prefix_bits = bits_of(
            (const void *)&((const struct sockaddr_in *)(const void *)mask)->sin_addr, V4_BYTES);
        return true;
    }
    if (address->sa_family == AF_INET6) {
        const struct in6_addr *v6 =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

        a->v6 = true;
        memcpy(a->bytes, v6, V6_BYTES);
        a->prefix_bits = bits_of(
            (const void *)&((const struct sockaddr_in6 *)(const void *)mask)->sin6_addr, V6_BYTES);
        return !IN6_IS_ADDR_LINKLOCAL(v6);
    }
    return false;
}

static bool
is_wanted(const char *interface, char *const *wanted)
{
    for (char *const *word = wanted; word != NULL && *word != NULL; word++) {
        if (**word != '\0' && g_str_has_prefix(interface, *word))
            return true;
    }
    return wanted == NULL;
}

static void
refuse_names(const char *names, GError **error)
{
    g_autoptr(GString) allowed = g_string_new(NULL);
    struct if_nameindex *interfaces = if_nameindex();

    for (const struct if_nameindex *i = interfaces; i != NULL && i->if_name != NULL; i++)
        g_string_append_printf(allowed, "%s%s", allowed->len > 0 ? ", " : "", i->if_name);
    if (interfaces != NULL)
        if_freenameindex(interfaces);
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "LONGHAUL_SOCKET_IFNAME: no network interface of this machine matches \"%s\"; "
                "interfaces: %s",
                names, allowed->str);
}

bool
lh_endpoint_here(LhEndpoint *here, GError **error)
{
    const char *names = g_getenv("LONGHAUL_SOCKET_IFNAME");
    g_auto(GStrv) wanted = names == NULL ? NULL : g_strsplit(names, ",", -1);
    struct ifaddrs *interfaces = NULL;
    bool found = wanted == NULL;

    *here = (LhEndpoint){ .chosen = wanted != NULL };
    identify_machine(here);
    if (getrandom(here->key, sizeof(here->key), 0) != (ssize_t)sizeof(here->key) ||
        getifaddrs(&interfaces) != 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "cannot read the network addresses of this machine: %s", g_strerror(errno));
        return false;
    }
    for (const struct ifaddrs *i = interfaces; i != NULL && here->count < LH_ADDRESSES_MAX;
         i = i->ifa_next) {
        if (!is_wanted(i->ifa_name, wanted))
            continue;
        found = true;
        if (read_address(i, &here->addresses[here->count]))
            here->count++;
    }
    if (!found)
        refuse_names(names, error);
    freeifaddrs(interfaces);
    return found;
}

/* ---- packing ---- */

gsize
lh_endpoint_packed_bytes(void)
{
    return PACKED_BYTES;
}

void
lh_endpoint_pack(const LhEndpoint *of, GByteArray *bytes)
{
    const unsigned char port[] = { (unsigned char)(of->port >> BITS), (unsigned char)of->port };
    const unsigned char count = (unsigned char)of->count;

    g_byte_array_append(bytes, of->machine, LH_MACHINE_BYTES);
    g_byte_array_append(bytes, of->key, LH_KEY_BYTES);
    g_byte_array_append(bytes, port, sizeof(port));
    g_byte_array_append(bytes, &count, 1);
    for (uint32_t i = 0; i < LH_ADDRESSES_MAX; i++) {
        const LhAddress *a = &of->addresses[i];
        const unsigned char head[] = { a->v6 ? 1 : 0, (unsigned char)a->prefix_bits };

        g_byte_array_append(bytes, head, sizeof(head));
        g_byte_array_append(bytes, a->bytes, V6_BYTES);
    }
}

bool
lh_endpoint_unpack(const unsigned char *bytes, LhEndpoint *into)
{
    *into = (LhEndpoint){ .count = 0 };
    memcpy(into->machine, bytes, LH_MACHINE_BYTES);
    bytes += LH_MACHINE_BYTES;
    memcpy(into->key, bytes, LH_KEY_BYTES);
    bytes += LH_KEY_BYTES;
    into->port = (uint16_t)(bytes[0] << BITS | bytes[1]);
    into->count = bytes[2];
    bytes += 3;
    if (into->count > LH_ADDRESSES_MAX || into->port == 0)
        return false;
    for (uint32_t i = 0; i < into->count; i++, bytes += ADDRESS_BYTES) {
        LhAddress *a = &into->addresses[i];

        a->v6 = bytes[0] != 0;
        a->prefix_bits = bytes[1];
        memcpy(a->bytes, bytes + 2, V6_BYTES);
        if (bytes[0] > 1 || a->prefix_bits > address_length(a) * BITS)
            return false;
    }
    return true;
}

/* ---- order of addresses ---- */

static bool
same_network(const LhAddress *a, const LhAddress *b)
{
    if (a->v6 != b->v6)
        return false;
    for (uint32_t i = 0; i < a->prefix_bits; i++) {
        if (((a->bytes[i / BITS] ^ b->bytes[i / BITS]) >> (BITS - 1 - i % BITS) & 1) != 0)
            return false;
    }
    return true;
}

static bool
is_near(const LhEndpoint *here, const LhAddress *a)
{
    for (uint32_t i = 0; i < here->count; i++) {
        if (same_network(&here->addresses[i], a))
            return true;
    }
    return false;
}

static bool
has(const LhEndpoint *of, const LhAddress *a)
{
    for (uint32_t i = 0; i < of->count; i++) {
        if (same_address(&of->addresses[i], a))
            return true;
    }
    return false;
}

void
lh_endpoint_order(const LhEndpoint *here, const LhEndpoint *there, GArray *order)
{
    if (memcmp(here->machine, there->machine, LH_MACHINE_BYTES) == 0) {
        g_array_append_val(order, lh_address_loopback);
        return;
    }
    for (int near = 1; near >= 0; near--) {
        for (uint32_t i = 0; i < there->count; i++) {
            const LhAddress *a = &there->addresses[i];

            if (!has(here, a) && is_near(here, a) == (near == 1))
                g_array_append_val(order, *a);
        }
    }
}

socklen_t
lh_address_socket(const LhAddress *address, uint16_t port, struct sockaddr_storage *socket_address)
{
    memset(socket_address, 0, sizeof(*socket_address));
    if (address->v6) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)socket_address;

        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        memcpy(&v6->sin6_addr, address->bytes, V6_BYTES);
        return sizeof(*v6);
    }
    {
        struct sockaddr_in *v4 = (struct sockaddr_in *)socket_address;

        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        memcpy(&v4->sin_addr, address->bytes, V4_BYTES);
        return sizeof(*v4);
    }
}

bool
lh_address_of(const struct sockaddr_storage *socket_address, LhAddress *address)
{
    *address = (LhAddress){ .v6 = false };
    if (socket_address->ss_family == AF_INET) {
        memcpy(address->bytes, &((const struct sockaddr_in *)socket_address)->sin_addr, V4_BYTES);
        return true;
    }
    if (socket_address->ss_family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)socket_address)->sin6_addr;

        address->v6 = !IN6_IS_ADDR_V4MAPPED(v6);
        if (address->v6)
            memcpy(address->bytes, v6, V6_BYTES);
        else
            memcpy(address->bytes, v6->s6_addr + V6_BYTES - V4_BYTES, V4_BYTES);
        return true;
    }
    return false;
}

char *
lh_address_text(const LhAddress *address)
{
    char text[INET6_ADDRSTRLEN] = "";

    inet_ntop(address->v6 ? AF_INET6 : AF_INET, address->bytes, text, sizeof(text));
    return g_strdup(text);
}
