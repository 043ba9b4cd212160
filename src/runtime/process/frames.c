/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/frames.h"

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

uint32_t
lh_frame_number(const unsigned char *from)
{
    uint32_t number;

    memcpy(&number, from, sizeof(number));
    return GUINT32_FROM_LE(number);
}

void
lh_frame_append_number(GByteArray *bytes, uint32_t number)
{
    unsigned char packed[sizeof(number)];

    put_number(packed, number);
    g_byte_array_append(bytes, packed, sizeof(packed));
}

/* ---- frames ---- */

static void
put_header(unsigned char *header, LhControlFrameKind kind, uint32_t bytes)
{
    memset(header, 0, LH_FRAME_HEADER_BYTES);
    memcpy(header, frame_magic, sizeof(frame_magic));
    header[KIND_AT] = (unsigned char)kind;
    put_number(header + LENGTH_AT, bytes);
}

GBytes *
lh_control_frame_header(LhControlFrameKind kind, uint32_t bytes)
{
    unsigned char header[LH_FRAME_HEADER_BYTES];

    put_header(header, kind, bytes);
    return g_bytes_new(header, sizeof(header));
}

void
lh_control_frame_clear(LhControlFrame *frame)
{
    g_clear_pointer(&frame->content, g_bytes_unref);
}

/* Whether the first @count bytes can begin a header. */
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
        g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME, "it does not send longhaul frames");
        return -1;
    }
    if (received->len < LH_FRAME_HEADER_BYTES)
        return 0;
    bytes = lh_frame_number(received->data + LENGTH_AT);
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

uint32_t
lh_control_frame_announced(const GByteArray *received)
{
    return received->len < LH_FRAME_HEADER_BYTES ? 0 : lh_frame_number(received->data + LENGTH_AT);
}

guint
lh_control_frame_missing(const GByteArray *received)
{
    if (received->len < LH_FRAME_HEADER_BYTES)
        return LH_FRAME_HEADER_BYTES - received->len;
    return LH_FRAME_HEADER_BYTES + lh_frame_number(received->data + LENGTH_AT) - received->len;
}

/* ---- contents ---- */

static void
append_text(GByteArray *bytes, const char *text)
{
    g_byte_array_append(bytes, (const guint8 *)text, (guint)strnlen(text, LH_FRAME_TEXT_BYTES));
}

/* NULL if @count exceeds the limit. */
static char *
read_text(const unsigned char *bytes, gsize count)
{
    return count > LH_FRAME_TEXT_BYTES ? NULL
                                       : g_utf8_make_valid((const char *)bytes, (gssize)count);
}

#define FAILURE_NUMBERS 2

GBytes *
lh_failure_pack(uint32_t rank, int status, const char *text)
{
    GByteArray *bytes = g_byte_array_new();

    lh_frame_append_number(bytes, rank);
    lh_frame_append_number(bytes, (uint32_t)status);
    append_text(bytes, text);
    return g_byte_array_free_to_bytes(bytes);
}

size_t
lh_last_words_pack(LhControlFrameKind kind, uint32_t rank, int status, const char *text,
                   unsigned char *frame)
{
    const size_t numbers = FAILURE_NUMBERS * sizeof(uint32_t);
    const size_t bytes = strnlen(text, LH_LAST_WORDS_BYTES);
    unsigned char *at = frame + LH_FRAME_HEADER_BYTES;

    put_header(frame, kind, (uint32_t)(numbers + bytes));
    put_number(at, rank);
    put_number(at + sizeof(uint32_t), (uint32_t)status);
    memcpy(at + numbers, text, bytes);
    return LH_FRAME_HEADER_BYTES + numbers + bytes;
}

char *
lh_failure_unpack(GBytes *content, uint32_t *rank, int *status)
{
    const gsize head = FAILURE_NUMBERS * sizeof(uint32_t);
    gsize count;
    const unsigned char *bytes = g_bytes_get_data(content, &count);

    if (count < head || lh_frame_number(bytes + sizeof(uint32_t)) > UINT8_MAX)
        return NULL;
    *rank = lh_frame_number(bytes);
    *status = (int)lh_frame_number(bytes + sizeof(uint32_t));
    return read_text(bytes + head, count - head);
}

GBytes *
lh_standing_pack(const LhStanding *standing)
{
    const guint ranks = MIN(standing->awaited->len, LH_STANDING_RANKS_MAX);
    GByteArray *bytes = g_byte_array_new();

    lh_frame_append_number(bytes, standing->gave_up);
    lh_frame_append_number(bytes, ranks);
    for (guint i = 0; i < ranks; i++)
        lh_frame_append_number(bytes, g_array_index(standing->awaited, uint32_t, i));
    append_text(bytes, standing->text);
    return g_byte_array_free_to_bytes(bytes);
}

bool
lh_standing_unpack(GBytes *content, LhStanding *standing)
{
    gsize count, head = FAILURE_NUMBERS * sizeof(uint32_t);
    const unsigned char *bytes = g_bytes_get_data(content, &count);
    uint32_t ranks;

    if (count < head || lh_frame_number(bytes) > 1)
        return false;
    ranks = lh_frame_number(bytes + sizeof(uint32_t));
    if (ranks > LH_STANDING_RANKS_MAX || count - head < ranks * sizeof(uint32_t) ||
        count - head - ranks * sizeof(uint32_t) > LH_FRAME_TEXT_BYTES)
        return false;
    *standing = (LhStanding){ .gave_up = lh_frame_number(bytes) == 1,
                              .awaited = g_array_new(FALSE, FALSE, sizeof(uint32_t)) };
    for (uint32_t i = 0; i < ranks; i++, head += sizeof(uint32_t)) {
        const uint32_t rank = lh_frame_number(bytes + head);

        g_array_append_val(standing->awaited, rank);
    }
    standing->text = read_text(bytes + head, count - head);
    return true;
}

void
lh_standing_clear(LhStanding *standing)
{
    g_array_unref(standing->awaited);
    g_free(standing->text);
}
