/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths of documents. Accepted ends increase and form a valid mask. */
#include "fuzz.h"
#include "model/mask.h"
#include "scenario/documents.h"

static void
check_mask(const LhDocuments *documents)
{
    const uint64_t tokens = documents->ends[documents->count - 1];
    const LhMaskRule rule = {
        .causal = true,
        .document_ends = documents->ends,
        .documents_count = documents->count,
    };
    const LhSegment all = { .stride = 1, .count = tokens };
    const LhInterval last = lh_mask_keys(&rule, tokens - 1, tokens);

    g_assert(last.end == tokens);
    g_assert(last.first == (documents->count == 1 ? 0 : documents->ends[documents->count - 2]));
    if (tokens < UINT64_C(1) << 31)
        g_assert(lh_mask_pairs(&rule, all, all) >= tokens);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhDocuments) documents =
        lh_documents_parse(FUZZ_NAME, (const char *)data, size, &error);
    uint64_t before = 0;

    fuzz_check_file(documents != NULL, error);
    if (documents == NULL)
        return 0;
    g_assert(documents->count >= 1 && documents->count <= LH_DOCUMENTS_MAX);
    g_assert(documents->sha256 != NULL);
    for (uint32_t i = 0; i < documents->count; i++) {
        g_assert(documents->ends[i] > before);
        before = documents->ends[i];
    }
    check_mask(documents);
    return 0;
}
