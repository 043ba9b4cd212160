/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data from other processes: frames in pieces of any size, their contents, and Slurm's lists of
 * hosts. Nothing is received that was not sent, and nothing is lost.
 */
#include "fuzz.h"
#include "runtime/process/handshake.h"

#include <string.h>

#define LIMIT 1024

static void
check_content(GBytes *content)
{
    LhStanding standing;
    LhHello hello;
    uint32_t rank = 0;
    int status = 0;
    g_autofree char *text = lh_failure_unpack(content, &rank, &status);

    if (lh_hello_unpack(content, &hello)) {
        g_autoptr(GBytes) again = lh_hello_pack(&hello);

        g_assert(g_bytes_equal(again, content));
    }
    if (text != NULL) {
        g_autoptr(GBytes) again = lh_failure_pack(rank, status, text);

        g_assert(g_utf8_validate(text, -1, NULL));
        g_assert(g_bytes_get_size(again) <= 2 * sizeof(rank) + LH_FRAME_TEXT_BYTES);
    }
    if (lh_standing_unpack(content, &standing)) {
        g_assert(g_utf8_validate(standing.text, -1, NULL));
        g_assert(standing.awaited->len <= LH_STANDING_RANKS_MAX);
        lh_standing_clear(&standing);
    }
}

/* Takes all complete frames; returns false if the data was rejected. */
static bool
take_all(GByteArray *received, GByteArray *taken)
{
    g_autoptr(GError) error = NULL;
    LhControlFrame frame;
    int result;

    while ((result = lh_control_frame_take(received, LIMIT, &frame, &error)) > 0) {
        const gsize bytes = g_bytes_get_size(frame.content);
        g_autoptr(GBytes) header = lh_control_frame_header(frame.kind, (uint32_t)bytes);

        g_assert(bytes <= LIMIT);
        g_byte_array_append(taken, g_bytes_get_data(header, NULL), LH_FRAME_HEADER_BYTES);
        g_byte_array_append(taken, g_bytes_get_data(frame.content, NULL), (guint)bytes);
        check_content(frame.content);
        lh_control_frame_clear(&frame);
    }
    fuzz_check(result == 0, error, NULL);
    return result == 0;
}

static void
check_hosts(const uint8_t *data, size_t size)
{
    g_autofree char *list = g_strndup((const char *)data, size);
    g_autofree char *host = lh_launcher_env_first_host(list);

    g_assert(host == NULL || (host[0] != '\0' && strpbrk(host, "[],") == NULL));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GByteArray) received = g_byte_array_new();
    g_autoptr(GByteArray) taken = g_byte_array_new();
    size_t at = 0;
    bool ok = true;

    check_hosts(data, size);
    /* the sizes of pieces depend on the bytes, too */
    while (ok && at < size) {
        const size_t piece = MIN((size_t)1 + data[at] % 7, size - at);

        g_byte_array_append(received, data + at, (guint)piece);
        at += piece;
        ok = take_all(received, taken);
    }
    g_assert(taken->len + received->len == at);
    g_assert(memcmp(taken->data != NULL ? taken->data : data, data, taken->len) == 0);
    return 0;
}
