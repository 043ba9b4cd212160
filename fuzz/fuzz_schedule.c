/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explicit programs: written and read again, verified, and simulated. The simulator completes what
 * the verifier proves, with the same bytes, flops and memory.
 */
#include "fuzz.h"
#include "program/explicit/explicit_read.h"
#include "program/explicit/explicit_write.h"

#include "program/explicit/explicit.h"
#include "verify/verify.h"

#include <string.h>

#define RANKS_MAX 64

static char *
write_program(const LhProgram *program)
{
    g_autoptr(GError) error = NULL;
    GString *text = g_string_new(NULL);
    bool ok = lh_program_write(program, text, &error);

    g_assert_no_error(error);
    g_assert(ok);
    return g_string_free(text, FALSE);
}

static void
check_round_trip(const LhProgram *program)
{
    g_autofree char *once = write_program(program);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhProgram) again = lh_program_parse(FUZZ_NAME, once, strlen(once), &error);
    g_autofree char *twice = NULL;

    g_assert_no_error(error);
    twice = write_program(again);
    g_assert_cmpstr(once, ==, twice);
}

/* A proven program ends, unless it is longer than the simulator's limit. */
static void
check_played(const LhVerdict *verdict, const LhSimResult *result, const GError *error)
{
    if (result == NULL) {
        g_assert(strstr(error->message, "26 days") != NULL ||
                 strcmp(error->message, "interrupted") == 0);
        return;
    }
    for (uint32_t r = 0; r < result->ranks_count; r++) {
        g_assert(result->ranks[r].bytes_sent == verdict->bytes_sent[r]);
        g_assert(result->ranks[r].peak_bytes == verdict->peak_bytes[r]);
    }
}

static void
play(const LhProgram *program, const LhVerdict *verdict)
{
    const bool proven = verdict->findings_total == 0;
    g_autoptr(LhTopology) topology = fuzz_topology();
    g_autoptr(LhDevice) device = fuzz_device();

    for (unsigned model = LH_NETWORK_FAIR; model <= LH_NETWORK_FIFO; model++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhSimResult) result =
            fuzz_play(program, topology, device, (LhNetworkModel)model, LH_COST_DEVICE, &error);

        if (proven)
            check_played(verdict, result, error);
    }
    lh_sim_result_free(fuzz_play(program, topology, device, LH_NETWORK_FAIR, LH_COST_UNIT, NULL));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhProgram) program = lh_program_parse(FUZZ_NAME, (const char *)data, size, &error);
    g_autoptr(LhVerdict) verdict = NULL;

    fuzz_check_file(program != NULL, error);
    if (program == NULL || lh_program_ranks(program) > RANKS_MAX)
        return 0;
    check_round_trip(program);
    verdict = lh_verify(program);
    for (guint i = 0; i < verdict->findings->len; i++) {
        const LhFinding *finding = &g_array_index(verdict->findings, LhFinding, i);

        g_assert(g_utf8_validate(finding->message, -1, NULL));
        g_assert(finding->rank < verdict->ranks || finding->rank == LH_OP_NONE);
    }
    play(program, verdict);
    return 0;
}
