/* SPDX-License-Identifier: Apache-2.0 */
/* Findings on fake machines: files as Linux has them below /sys. */
#include "doctor/doctor.h"
#include "machine_files.h"
#include "report/text/cluster/describe_doctor.h"
#include "run_tests.h"

#include <string.h>

/* Row @index of @part; NULL if there are fewer. */
static const LhDoctorRow *
find(const LhDoctor *doctor, const char *part, guint index)
{
    for (guint i = 0; i < doctor->rows->len; i++) {
        const LhDoctorRow *row = &g_array_index(doctor->rows, LhDoctorRow, i);

        if (strcmp(row->part, part) == 0 && index-- == 0)
            return row;
    }
    return NULL;
}

static void
check_row(const LhDoctorRow *row, LhHealth health, const char *found, const char *advice)
{
    ck_assert_ptr_nonnull(row);
    ck_assert_int_eq(row->health, health);
    ck_assert_str_eq(row->found, found);
    if (advice[0] == '\0')
        ck_assert_str_eq(row->advice, "");
    else
        ck_assert_msg(strstr(row->advice, advice) != NULL, "%s", row->advice);
}

START_TEST(empty_machine_is_described)
{
    g_autoptr(LhDoctor) doctor = NULL;

    begin_machine();
    doctor = lh_doctor_new(root);
    check_row(find(doctor, "network", 0), LH_HEALTH_ABSENT, "", "only the loopback interface");
    ck_assert_ptr_null(find(doctor, "infiniband", 0));
    check_row(find(doctor, "clock", 0), LH_HEALTH_WORKS, "unknown", "");
    check_row(find(doctor, "memory", 0), LH_HEALTH_WORKS, "unknown limit", "");
    end_machine();
}
END_TEST

START_TEST(networks_are_listed)
{
    g_autoptr(LhDoctor) doctor = NULL;

    begin_machine();
    put("/sys/class/net/lo/operstate", "unknown\n");
    put("/sys/class/net/eth1/operstate", "down\n");
    put("/sys/class/net/eth1/speed", "-1\n");
    put("/sys/class/net/eth0/operstate", "up\n");
    put("/sys/class/net/eth0/speed", "25000\n");
    put("/sys/class/net/hostile\x1b[31m/operstate", "u\x1b[31mp\nsecond line\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    put("/sys/class/infiniband/mlx5_0/ports/2/state", "1: DOWN\n");
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    doctor = lh_doctor_new(root);
    check_row(find(doctor, "network", 0), LH_HEALTH_WORKS, "eth0, 25 Gb/s, up", "");
    check_row(find(doctor, "network", 1), LH_HEALTH_ABSENT, "eth1, rate unknown, down",
              "it is down");
    check_row(find(doctor, "network", 2), LH_HEALTH_WORKS,
              "hostile\\x1b[31m, rate unknown, u\\x1b[31mp", "");
    ck_assert_ptr_null(find(doctor, "network", 3));
    check_row(find(doctor, "infiniband", 0), LH_HEALTH_WORKS,
              "mlx5_0 port 1, 400 Gb/sec (4X NDR), 4: ACTIVE", "");
    check_row(find(doctor, "infiniband", 1), LH_HEALTH_ABSENT,
              "mlx5_0 port 2, rate unknown, 1: DOWN", "not active");
    check_row(find(doctor, "clock", 0), LH_HEALTH_WORKS, "hpet", "microsecond");
    end_machine();
}
END_TEST

START_TEST(launchers_are_named)
{
    g_autoptr(LhDoctor) alone = NULL, started = NULL, broken = NULL;

    begin_machine();
    alone = lh_doctor_new(root);
    check_row(find(alone, "bootstrap", 0), LH_HEALTH_WORKS, "single: one process has all ranks",
              "");
    g_setenv("RANK", "1", TRUE);
    g_setenv("WORLD_SIZE", "2", TRUE);
    g_setenv("MASTER_ADDR", "node1", TRUE);
    g_setenv("MASTER_PORT", "29500", TRUE);
    started = lh_doctor_new(root);
    check_row(find(started, "bootstrap", 0), LH_HEALTH_WORKS,
              "torchrun: rank 1 of 2, rank 0 at node1, port 29501", "");
    g_setenv("RANK", "2", TRUE);
    broken = lh_doctor_new(root);
    check_row(find(broken, "bootstrap", 0), LH_HEALTH_FAILS, "torchrun", "RANK: ");
    /* One process with all ranks needs no other process. */
    ck_assert(g_array_index(broken->backends, LhDoctorBackend, 0).works);
    end_machine();
}
END_TEST

/* Absent parts are null, and working ones have no advice. */
START_TEST(documents_say_what_there_is)
{
    static const LhBackend backend = { .name = "tcp" };
    static char found[] = "2 cores", nothing[] = "", advice[] = "install it", why[] = "no network";
    const char *const argv[] = { "longhaul", "doctor", NULL };
    const LhStamp stamp = { .argv = argv };
    const LhDoctorRow rows[] = { { "cores", LH_HEALTH_WORKS, found, nothing },
                                 { "nccl", LH_HEALTH_ABSENT, nothing, advice } };
    const LhDoctorBackend backends[] = { { &backend, false, why }, { &backend, true, nothing } };
    g_autoptr(GString) out = g_string_new(NULL);
    LhDoctor doctor = { g_array_new(FALSE, FALSE, sizeof(LhDoctorRow)),
                        g_array_new(FALSE, FALSE, sizeof(LhDoctorBackend)) };

    g_array_append_vals(doctor.rows, rows, 2);
    g_array_append_vals(doctor.backends, backends, 2);
    lh_doctor_json(&doctor, false, &stamp, out);
    g_array_unref(doctor.rows);
    g_array_unref(doctor.backends);
    ck_assert_ptr_nonnull(strstr(out->str, "\"ok\": false,\n  \"parts\": [\n    {\n"
                                           "      \"part\": \"cores\",\n"
                                           "      \"state\": \"works\",\n"
                                           "      \"found\": \"2 cores\",\n"
                                           "      \"advice\": null\n    },"));
    ck_assert_ptr_nonnull(strstr(out->str, "      \"state\": \"absent\",\n"
                                           "      \"found\": null,\n"
                                           "      \"advice\": \"install it\"\n"));
    ck_assert_ptr_nonnull(strstr(out->str, "      \"backend\": \"tcp\",\n"
                                           "      \"works\": false,\n"
                                           "      \"why\": \"no network\"\n"));
    ck_assert_ptr_nonnull(strstr(out->str, "      \"works\": true,\n      \"why\": null\n"));
}
END_TEST

LH_TEST_MAIN("doctor", documents_say_what_there_is, empty_machine_is_described, networks_are_listed,
             launchers_are_named)
