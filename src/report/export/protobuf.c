/* SPDX-License-Identifier: Apache-2.0 */
#include "report/export/protobuf.h"

#include <string.h>

#define VARINT_MAX 10
#define WIRE_FIXED64 1
#define WIRE_BYTES 2

static guint
encode(uint64_t value, char *bytes)
{
    guint length = 0;

    for (; value >= 0x80; value >>= 7)
        bytes[length++] = (char)((value & 0x7f) | 0x80);
    bytes[length++] = (char)value;
    return length;
}

void
lh_proto_varint(GString *out, uint64_t value)
{
    char bytes[VARINT_MAX];

    g_string_append_len(out, bytes, encode(value, bytes));
}

void
lh_proto_uint(GString *out, uint32_t field, uint64_t value)
{
    lh_proto_varint(out, (uint64_t)field << 3);
    lh_proto_varint(out, value);
}

void
lh_proto_fixed64(GString *out, uint32_t field, uint64_t value)
{
    lh_proto_varint(out, (uint64_t)field << 3 | WIRE_FIXED64);
    for (int i = 0; i < 8; i++)
        g_string_append_c(out, (char)(value >> (8 * i) & 0xff));
}

void
lh_proto_double(GString *out, uint32_t field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    lh_proto_fixed64(out, field, bits);
}

void
lh_proto_text(GString *out, uint32_t field, const char *text)
{
    lh_proto_varint(out, (uint64_t)field << 3 | WIRE_BYTES);
    lh_proto_varint(out, strlen(text));
    g_string_append(out, text);
}

gsize
lh_proto_begin(GString *out, uint32_t field)
{
    lh_proto_varint(out, (uint64_t)field << 3 | WIRE_BYTES);
    return out->len;
}

/* Inserts the length, which is known only now. */
void
lh_proto_end(GString *out, gsize begin)
{
    lh_proto_prefix(out, begin);
}

void
lh_proto_prefix(GString *out, gsize begin)
{
    char bytes[VARINT_MAX];

    g_string_insert_len(out, (gssize)begin, bytes, encode(out->len - begin, bytes));
}
