/* See the header. */
#include "runtime/frames.h"

#include "base/error.h"

#include <string.h>

static const unsigned char frame_magic[4] = { 'l', 'h', 'F', '1' };

#define KIND_AT 4
#define LENGTH_AT 8

static void
put_number(unsigned char *to, uint32_t number)
{
    number = GUINT32_TO_LE(number);
    memcpy(to, &number, sizeof(number));
}

static uint32_t
get_number(const unsigned char *from)
{
    uint32_t number;

    memcpy(&number, from, sizeof(number));
    return GUINT32_FROM_LE(number);
}

/* ---- frames ---- */

GBytes *
lh_control_frame_header(LhControlFrameKind kind, uint32_t bytes)
{
    unsigned char header[LH_FRAME_HEADER_BYTES] = { 0 };

    memcpy(header, frame_magic, sizeof(frame_magic));
    header[KIND_AT] = (unsigned char)kind;
    put_number(header + LENGTH_AT, bytes);
    return g_bytes_new(header, sizeof(header));
}

void
lh_control_frame_clear(LhControlFrame *frame)
{
    g_clear_pointer(&frame->content, g_bytes_unref);
}

/* Whether what is there of a header can be one. */
static bool
may_be_header(const unsigned char *header, size_t count)
{
    static const unsigned char zeros[LENGTH_AT - KIND_AT - 1];

    if (memcmp(header, frame_magic, MIN(count, sizeof(frame_magic))) != 0)
        return false;
    if (count > KIND_AT && header[KIND_AT] >= LH_FRAME_KINDS)
        return false;
    return count < LENGTH_AT || memcmp(header + KIND_AT + 1, zeros, sizeof(zeros)) == 0;
}

int
lh_control_frame_take(GByteArray *received, uint32_t limit, LhControlFrame *frame, GError **error)
{
    uint32_t bytes;

    if (received->len == 0)
        return 0;
    if (!may_be_header(received->data, MIN(received->len, LH_FRAME_HEADER_BYTES))) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                            "what it sends is not what longhaul sends");
        return -1;
    }
    if (received->len < LH_FRAME_HEADER_BYTES)
        return 0;
    bytes = get_number(received->data + LENGTH_AT);
    if (bytes > limit) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "it announces %u bytes, where at most %u are expected", bytes, limit);
        return -1;
    }
    if (received->len - LH_FRAME_HEADER_BYTES < bytes)
        return 0;
    *frame =
        (LhControlFrame){ .kind = (LhControlFrameKind)received->data[KIND_AT],
                          .content = g_bytes_new(received->data + LH_FRAME_HEADER_BYTES, bytes) };
    g_byte_array_remove_range(received, 0, LH_FRAME_HEADER_BYTES + bytes);
    return 1;
}

guint
lh_control_frame_missing(const GByteArray *received)
{
    if (received->len < LH_FRAME_HEADER_BYTES)
        return LH_FRAME_HEADER_BYTES - received->len;
    return LH_FRAME_HEADER_BYTES + get_number(received->data + LENGTH_AT) - received->len;
}

/* ---- contents ---- */

GBytes *
lh_failure_pack(uint32_t rank, const char *text)
{
    GByteArray *bytes = g_byte_array_new();
    unsigned char number[sizeof(rank)];

    put_number(number, rank);
    g_byte_array_append(bytes, number, sizeof(number));
    g_byte_array_append(bytes, (const guint8 *)text, (guint)strnlen(text, LH_FRAME_TEXT_BYTES));
    return g_byte_array_free_to_bytes(bytes);
}

char *
lh_failure_unpack(GBytes *content, uint32_t *rank)
{
    gsize count;
    const unsigned char *bytes = g_bytes_get_data(content, &count);

    if (count < sizeof(*rank) || count - sizeof(*rank) > LH_FRAME_TEXT_BYTES)
        return NULL;
    *rank = get_number(bytes);
    return g_utf8_make_valid((const char *)bytes + sizeof(*rank), (gssize)(count - sizeof(*rank)));
}
